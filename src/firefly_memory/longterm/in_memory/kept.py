"""The rows of long-term memory in dicts. Rows are named tuples of texts: nobody can change one that is stored."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.errors import StoreClosedError
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import FACTS, FactRow, UserRow, VersionRow
from firefly_memory.search.in_memory import MemorySearchIndex
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.tombstones.in_memory import MemoryTombstones

K = TypeVar("K", bound=Hashable)


class Memory(Protocol):
    """The store, as far as long-term memory needs it."""

    lock: ForkSafeLock
    tombstones: MemoryTombstones


class Kept:
    """What is stored. The caller of every method but :meth:`opened` and :meth:`close` holds the lock."""

    def __init__(self, memory: Memory) -> None:
        self._lock = memory.lock
        self.tombstones = memory.tombstones
        self.facts: dict[str, FactRow] = {}
        self.fact_ids: list[str] = []
        """Sorted, as each list here."""
        self.facts_at: dict[tuple[str, str], str] = {}
        """By the word of the place and the key, the id."""
        self.listed: dict[str, list[Any]] = {}
        """By the word of the place, where each fact stands in lists."""
        self.facts_of: dict[str, list[str]] = {}
        """By owner."""
        self.versions: dict[str, dict[int, VersionRow]] = {}
        """By fact and number."""
        self.people: dict[str, UserRow] = {}
        self.people_by_word: dict[str, str] = {}
        self.language: IndexLanguage | None = None
        self.index = MemorySearchIndex(FACTS, self.facts, memory.lock)
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self.index.close()
            self.language = None
            kept: tuple[Any, ...] = (
                self.facts, self.fact_ids, self.facts_at, self.listed, self.facts_of,
                self.versions, self.people, self.people_by_word,
            )  # fmt: skip
            for each in kept:
                each.clear()

    @contextmanager
    def opened(self, operation: str) -> Iterator[None]:
        """The lock, held until the end of an operation."""
        with self._lock:
            if self._closed:
                raise StoreClosedError(operation)
            yield

    def root(self, word: str) -> UserRow | None:
        """The person for whom the one with this word stands."""
        found = self.people_by_word.get(word)
        if found is None:
            return None
        root = self.people_by_word.get(self.people[found].stands_for)
        return None if root is None else self.people[root]

    def fact_seen(self, lookup: Lookup, key: str) -> FactRow | None:
        """The fact in the most specific place."""
        root = None if lookup.user is None else self.root(lookup.user)
        words = lookup.words if root is None else lookup._replace(user=root.word).words
        ids = (self.facts_at.get((word, key)) for word in words)
        return next((self.facts[each] for each in ids if each is not None), None)

    def put(self, row: FactRow) -> None:
        """Store a fact, new or not. Its vectors stay if its value does."""
        old = self.facts.get(row.id)
        vectors = [] if old is None or old.value != row.value else self.index.vectors_of(row.id)
        if old is not None:
            self._take_out(old)
        self.facts[row.id] = row
        insort(self.fact_ids, row.id)
        self.facts_at[row.scope, row.key] = row.id
        insort(self.listed.setdefault(row.scope, []), listed(row))
        if row.owner is not None:
            insort(self.facts_of.setdefault(row.owner, []), row.id)
        self.index.add(row)
        for vector in vectors:
            self.index.add_vector(row, vector)

    def put_version(self, version: VersionRow) -> None:
        self.versions.setdefault(version.fact_id, {})[version.number] = version

    def put_vector(self, fact_id: str, vector: Vector) -> bool:
        """Whether the fact is there, and had none of this embedder."""
        return fact_id in self.facts and self.index.add_vector(self.facts[fact_id], vector)

    def remove(self, fact_id: str) -> bool:
        """Delete a fact with its versions and vectors; whether it was there."""
        row = self.facts.get(fact_id)
        if row is None:
            return False
        self._take_out(row)
        self.versions.pop(fact_id, None)
        return True

    def put_person(self, row: UserRow) -> None:
        self.people[row.id] = row
        self.people_by_word[row.word] = row.id

    def remove_person(self, row: UserRow) -> None:
        del self.people[row.id], self.people_by_word[row.word]

    def _take_out(self, row: FactRow) -> None:
        del self.facts[row.id], self.facts_at[row.scope, row.key]
        del self.fact_ids[bisect_left(self.fact_ids, row.id)]
        _remove_from(self.listed, row.scope, listed(row))
        if row.owner is not None:
            _remove_from(self.facts_of, row.owner, row.id)
        self.index.remove(row)


def listed(row: FactRow) -> tuple[float, float, str]:
    """Where a fact stands in the list of its place."""
    return -row.confidence, -row.newest.timestamp(), row.id


def after(places: list[Any], position: Any, limit: int) -> list[Any]:
    """The first of the sorted ``places`` after one."""
    start = bisect_right(places, position)
    return places[start : start + limit]


def _remove_from(places_by: dict[K, list[Any]], key: K, place: Any) -> None:
    places = places_by[key]
    del places[bisect_left(places, place)]
    if not places:
        del places_by[key]
