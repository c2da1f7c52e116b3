"""Chunks in the memory of this process."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol, TypeVar

from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.cursors import Moment
from firefly_memory.errors import StoreClosedError
from firefly_memory.knowledge.log import CHUNKS, ChunkRow
from firefly_memory.search.in_memory import MemorySearchIndex
from firefly_memory.search.index import SearchIndex, Vector
from firefly_memory.search.index_language import IndexLanguage, another_language
from firefly_memory.tombstones.in_memory import MemoryTombstones

K = TypeVar("K", bound=Hashable)


class Memory(Protocol):
    """The store, as far as knowledge needs it."""

    lock: ForkSafeLock
    tombstones: MemoryTombstones


class MemoryKnowledgeLog:
    """A :class:`~firefly_memory.knowledge.log.KnowledgeLog` in dicts. Rows are named tuples of texts: nobody can change
    one that is stored."""

    def __init__(self, memory: Memory) -> None:
        self._lock = memory.lock
        self._tombstones = memory.tombstones
        self._rows: dict[str, ChunkRow] = {}
        self._ids: list[str] = []
        """Sorted, as each list here."""
        self._ids_of: dict[str, list[str]] = {}
        """By owner."""
        self._moments: dict[tuple[str, str], list[Moment]] = {}
        """By space and collection, when each chunk was created."""
        self._language: IndexLanguage | None = None
        self._index = MemorySearchIndex(CHUNKS, self._rows, memory.lock)
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._index.close()
            self._language = None
            kept: tuple[Any, ...] = self._rows, self._ids, self._ids_of, self._moments
            for each in kept:
                each.clear()

    @property
    def index(self) -> SearchIndex:
        return self._index

    async def language(self) -> IndexLanguage | None:
        with self._opened("language"):
            return self._language

    async def add(self, rows: Sequence[ChunkRow], vectors: Mapping[str, Vector], language: IndexLanguage | None) -> int:
        with self._opened("add_chunks"):
            self._check_language(language)
            self._tombstones.check("add_chunks", {identity for row in rows for identity in row.identities})
            if rows:
                self._language = self._language or language
            new = [row for row in rows if self._put(row)]
            self._put_vectors(vectors)
            return len(new)

    async def read(self, ids: Sequence[str]) -> Sequence[ChunkRow]:
        with self._opened("read_chunks"):
            return [self._rows[each] for each in dict.fromkeys(ids) if each in self._rows]

    async def page(self, limit: int, after: str) -> Sequence[ChunkRow]:
        with self._opened("page_of_chunks"):
            return [self._rows[each] for each in _after(self._ids, after, limit)]

    async def oldest(self, space: str, collection: str, limit: int, after: Moment | None) -> Sequence[ChunkRow]:
        with self._opened("list_chunks"):
            moments = self._moments.get((space, collection), [])
            found = moments[:limit] if after is None else _after(moments, after, limit)
            return [self._rows[each.name] for each in found]

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[str]:
        with self._opened("chunks_of_owner"):
            return _after(self._ids_of.get(owner, []), after, limit)

    async def collections(self, space: str, limit: int, after: str) -> Sequence[str]:
        with self._opened("collections"):
            return sorted(name for of_space, name in self._moments if of_space == space and name > after)[:limit]

    async def count(self, space: str | None, collection: str | None) -> int:
        with self._opened("count_chunks"):
            if space is None:
                return len(self._rows)
            if collection is not None:
                return len(self._moments.get((space, collection), ()))
            return sum(len(moments) for (of_space, _), moments in self._moments.items() if of_space == space)

    async def set_language(self, language: IndexLanguage) -> None:
        with self._opened("set_language"):
            self._language = language

    async def rewrite(self, rows: Sequence[ChunkRow]) -> int:
        with self._opened("rewrite_chunks"):
            for row in rows:
                there = self._rows.get(row.id)
                if there is not None:
                    new = self._rows[row.id] = there._replace(searchable=row.searchable, words=tuple(row.words))
                    self._index.replace_words(there, new)
        return len(rows)

    async def damage(self) -> Sequence[str]:
        return []

    async def mend(self) -> None:
        """Nothing can be wrong."""

    async def delete(self, ids: Sequence[str]) -> int:
        with self._opened("delete_chunks"):
            return self._remove(ids)

    async def delete_some(self, space: str, collection: str, source: str | None, limit: int) -> int:
        with self._opened("delete_chunks"):
            names = (each.name for each in self._moments.get((space, collection), ()))
            wanted = (name for name in names if source is None or self._rows[name].source == source)
            return self._remove(list(islice(wanted, limit)))

    async def without_vector(self, embedder: str, limit: int, after: str) -> Sequence[ChunkRow]:
        found: list[ChunkRow] = []
        with self._opened("chunks_without_vector"):
            for place in range(bisect_right(self._ids, after), len(self._ids)):
                if len(found) == limit:
                    break
                if not self._index.has_vector(self._ids[place], embedder):
                    found.append(self._rows[self._ids[place]])
        return found

    async def add_vectors(self, vectors: Mapping[str, Vector]) -> int:
        with self._opened("add_vectors"):
            return self._put_vectors(vectors)

    async def vectors_by_embedder(self) -> Mapping[str, int]:
        with self._opened("count_vectors"):
            return self._index.vectors_by_embedder()

    async def delete_vectors(self, embedder: str, limit: int, after: str) -> Sequence[str]:
        with self._opened("delete_vectors"):
            return self._index.delete_vectors(embedder, limit, after)

    @contextmanager
    def _opened(self, operation: str) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise StoreClosedError(operation)
            yield

    def _check_language(self, language: IndexLanguage | None) -> None:
        if language is not None and self._language not in (None, language):
            raise another_language(CHUNKS, self._language, language)

    def _put(self, row: ChunkRow) -> bool:
        """Store a chunk; whether it was not there yet."""
        if row.id in self._rows:
            return False
        row = row._replace(words=tuple(row.words))
        self._rows[row.id] = row
        insort(self._ids, row.id)
        if row.owner is not None:
            insort(self._ids_of.setdefault(row.owner, []), row.id)
        insort(self._moments.setdefault((row.space, row.collection), []), _moment(row))
        self._index.add(row)
        return True

    def _put_vectors(self, vectors: Mapping[str, Vector]) -> int:
        return sum(
            self._index.add_vector(self._rows[each], vector) for each, vector in vectors.items() if each in self._rows
        )

    def _remove(self, ids: Sequence[str]) -> int:
        removed = [row for each in ids if (row := self._rows.pop(each, None)) is not None]
        for row in removed:
            del self._ids[bisect_left(self._ids, row.id)]
            if row.owner is not None:
                _remove_from(self._ids_of, row.owner, row.id)
            _remove_from(self._moments, (row.space, row.collection), _moment(row))
            self._index.remove(row)
        return len(removed)


def _moment(row: ChunkRow) -> Moment:
    return Moment(row.created_at, row.id)


def _after(places: list[Any], after: Any, limit: int) -> list[Any]:
    """The first of the sorted ``places`` after one."""
    start = bisect_right(places, after)
    return places[start : start + limit]


def _remove_from(places_by: dict[K, list[Any]], key: K, place: Any) -> None:
    places = places_by[key]
    del places[bisect_left(places, place)]
    if not places:
        del places_by[key]
