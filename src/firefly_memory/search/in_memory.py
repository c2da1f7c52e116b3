"""An index in the memory of this process, over the rows of any facet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from heapq import nsmallest
from operator import attrgetter
from typing import Protocol, TypeVar

from firefly_memory import clock
from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.errors import StoreClosedError
from firefly_memory.identifiers import original_name, original_or_none
from firefly_memory.search.candidates import Candidate
from firefly_memory.search.filters import Conditions, passes
from firefly_memory.search.index import Signatures, Subject, Vector, WithoutAccelerator
from firefly_memory.search.neighbours import REACH

K = TypeVar("K", bound=Hashable)


class IndexedRow(Protocol):
    """A row of a facet: it has the :class:`~firefly_memory.search.index.Indexed` fields."""

    @property
    def id(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def searchable(self) -> str: ...
    @property
    def words(self) -> Sequence[str]: ...
    @property
    def who(self) -> str | None: ...
    @property
    def group_id(self) -> str | None: ...
    @property
    def position(self) -> int: ...
    @property
    def newest(self) -> datetime:
        """When it was said, or else written: :meth:`MemorySearchIndex.containing` orders by it."""


class MemorySearchIndex(WithoutAccelerator):
    """A :class:`~firefly_memory.search.index.SearchIndex` over the rows of a mapping, by id.

    The facet keeps the mapping. It calls :meth:`add` for each row that it stores, and :meth:`remove` for each row that
    it deletes, and holds the lock for these; the methods that read take it.
    """

    def __init__(self, subject: Subject, rows: Mapping[str, IndexedRow], lock: ForkSafeLock) -> None:
        self._expires = subject.expires
        self._rows = rows
        self._lock = lock
        self._closed = False
        self._having: dict[tuple[str, str], set[str]] = {}
        """By scope and word, the ids of the rows that have it."""
        self._places: dict[tuple[str, str, int], set[str]] = {}
        """By scope, group and position: two texts may have one place."""
        self._people: dict[str, Counter[str]] = {}
        """By scope, how many rows each person said."""
        self._vectors: dict[str, dict[str, Vector]] = {}
        """By embedder and id."""
        self._with_vector: dict[tuple[str, str], set[str]] = {}
        """By scope and embedder, the ids of the rows that have a vector."""

    def add(self, row: IndexedRow) -> None:
        """Index a new row."""
        for word in set(row.words):
            self._having.setdefault((row.scope, word), set()).add(row.id)
        if row.group_id is not None:
            self._places.setdefault((row.scope, row.group_id, row.position), set()).add(row.id)
        if row.who is not None:
            self._people.setdefault(row.scope, Counter())[row.who] += 1

    def remove(self, row: IndexedRow) -> None:
        """Forget a row that was added, with its vectors. Nothing of its text is left."""
        for word in set(row.words):
            _discard(self._having, (row.scope, word), row.id)
        if row.group_id is not None:
            _discard(self._places, (row.scope, row.group_id, row.position), row.id)
        if row.who is not None:
            self._forget_who(row.scope, row.who)
        for embedder in list(self._vectors):
            self._forget_vector(embedder, row)

    def replace_words(self, row: IndexedRow, new: IndexedRow) -> None:
        """The same row has other words now."""
        for word in set(row.words):
            _discard(self._having, (row.scope, word), row.id)
        for word in set(new.words):
            self._having.setdefault((new.scope, word), set()).add(new.id)

    def add_vector(self, row: IndexedRow, vector: Vector) -> bool:
        """Store the vector of a row that was added; whether it had none of this embedder."""
        of_embedder = self._vectors.setdefault(vector.embedder, {})
        if row.id in of_embedder:
            return False
        of_embedder[row.id] = vector
        self._with_vector.setdefault((row.scope, vector.embedder), set()).add(row.id)
        return True

    def vectors_of(self, row_id: str) -> list[Vector]:
        """The vectors of a row, one for each embedder. The caller holds the lock."""
        return [of_embedder[row_id] for of_embedder in self._vectors.values() if row_id in of_embedder]

    def has_vector(self, row_id: str, embedder: str) -> bool:
        """Whether the row has a vector of this embedder. The caller holds the lock."""
        return row_id in self._vectors.get(embedder, {})

    def vectors_by_embedder(self) -> dict[str, int]:
        """How many there are of each. The caller holds the lock."""
        return {embedder: len(of_embedder) for embedder, of_embedder in self._vectors.items()}

    def delete_vectors(self, embedder: str, limit: int, after: str) -> list[str]:
        """Those of the first rows after an id; the ids of these rows. The caller holds the lock."""
        ids = sorted(each for each in self._vectors.get(embedder, ()) if each > after)[:limit]
        for each in ids:
            self._forget_vector(embedder, self._rows[each])
        return ids

    def close(self) -> None:
        """Forget everything, with the rows of the store. The caller holds the lock."""
        self._closed = True
        for kept in (self._having, self._places, self._people, self._vectors, self._with_vector):
            kept.clear()

    async def counts(self, scopes: Sequence[str], words: Sequence[str], most: int | None) -> Mapping[str, int]:
        with self._opened():
            return {word: sum(len(ids) for ids in self._ids_having(scopes, word)) for word in words}

    async def best(
        self, scopes: Sequence[str], weights: Mapping[str, int], limit: int, conditions: Conditions = ()
    ) -> Sequence[str]:
        sums = Counter[str]()
        with self._opened():
            for word, weight in weights.items():
                for ids in self._ids_having(scopes, word):
                    for each in ids:
                        sums[each] += weight
            wanted = self._wanted(sums, conditions)
        return nsmallest(limit, wanted, key=lambda each: (-sums[each], each))

    async def around(
        self,
        scopes: Sequence[str],
        ids: Sequence[str],
        conditions: Conditions = (),
        *,
        words: bool = True,
    ) -> Sequence[Candidate]:
        with self._opened():
            these = self._wanted([each for each in ids if each in self._rows], conditions)
            rows = [self._rows[each] for each in these if self._rows[each].scope in scopes]
            found = {near: None for row in rows for near in (row.id, *self._neighbours(row))}
            return [_candidate(self._rows[each]) for each in self._wanted(found, conditions)]

    async def containing(
        self, scopes: Sequence[str], text: str, limit: int, conditions: Conditions = ()
    ) -> Sequence[str]:
        with self._opened():
            rows = (self._rows[each] for each in self._wanted(self._ids_in(scopes), conditions))
            found = sorted((row for row in rows if text in row.searchable), key=lambda row: row.id)
        return [row.id for row in sorted(found, key=lambda row: row.newest, reverse=True)[:limit]]

    async def people(self, scopes: Sequence[str], limit: int) -> Sequence[str]:
        with self._opened():
            if self._expires is None:
                found = {who for scope in scopes for who in self._people.get(scope, ())}
            else:
                live = (self._rows[each].who for each in self._wanted(self._ids_in(scopes)))
                found = {who for who in live if who is not None}
        return [original_name(who) for who in sorted(found)[:limit]]

    async def signatures(
        self, scopes: Sequence[str], embedder: str, most: int, conditions: Conditions = ()
    ) -> Signatures | None:
        with self._opened():
            of_scopes = [self._with_vector.get((scope, embedder), set()) for scope in dict.fromkeys(scopes)]
            if conditions:
                of_scopes = [{each for each in ids if passes(self._rows[each], conditions)} for ids in of_scopes]
            if sum(map(len, of_scopes)) > most:
                return None
            ids = sorted(each for of_scope in of_scopes for each in of_scope)
            return Signatures(ids, [self._vectors[embedder][each].signature for each in ids])

    async def vectors(self, embedder: str, ids: Sequence[str]) -> Mapping[str, bytes]:
        with self._opened():
            there = self._vectors.get(embedder, {})
            return {each: there[each].vector for each in ids if each in there}

    @contextmanager
    def _opened(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise StoreClosedError("search")
            yield

    def _wanted(self, ids: Iterable[str], conditions: Conditions = ()) -> Iterable[str]:
        """Those of the rows that have not expired and fulfil the conditions."""
        if conditions:
            ids = [each for each in ids if passes(self._rows[each], conditions)]
        if self._expires is None:
            return ids
        now, until = clock.now(), attrgetter(self._expires)
        return [each for each in ids if (end := until(self._rows[each])) is None or end > now]

    def _ids_having(self, scopes: Iterable[str], word: str) -> Iterator[set[str]]:
        """The ids of each scope apart: no row is in two."""
        for scope in dict.fromkeys(scopes):
            if (scope, word) in self._having:
                yield self._having[scope, word]

    def _ids_in(self, scopes: Iterable[str]) -> Iterator[str]:
        """Each scope is a word of all its rows."""
        for scope in dict.fromkeys(scopes):
            yield from self._having.get((scope, scope), ())

    def _neighbours(self, row: IndexedRow) -> Iterator[str]:
        if row.group_id is not None:
            for position in range(row.position - REACH, row.position + REACH + 1):
                yield from self._places.get((row.scope, row.group_id, position), ())

    def _forget_who(self, scope: str, who: str) -> None:
        people = self._people[scope]
        people[who] -= 1
        if not people[who]:
            del people[who]
        if not people:
            del self._people[scope]

    def _forget_vector(self, embedder: str, row: IndexedRow) -> None:
        if self._vectors[embedder].pop(row.id, None) is not None:
            _discard(self._with_vector, (row.scope, embedder), row.id)
        if not self._vectors[embedder]:
            del self._vectors[embedder]


def _discard(ids_by: dict[K, set[str]], key: K, row_id: str) -> None:
    ids_by[key].discard(row_id)
    if not ids_by[key]:
        del ids_by[key]


def _candidate(row: IndexedRow) -> Candidate:
    # The name of a group counts in its scope only: another person's group may have the same.
    group = None if row.group_id is None else f"{row.scope} {row.group_id}"
    return Candidate(id=row.id, words=row.words, who=original_or_none(row.who), group=group, position=row.position)
