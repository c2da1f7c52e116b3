"""Many chunks in a store: added by the library, by as many processes as there are cores."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context

import psycopg

from benchmarks.search_texts import Language
from firefly_memory import EntryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder

_AT_ONCE = 1_000
_ALONE = 5_000
"""So few chunks are not worth a process."""


@dataclass(frozen=True)
class Place:
    """One database, which other processes open as well."""

    backend: str
    address: str
    """Its URL, or the path of its file."""

    def open(self) -> EntryStore:
        match self.backend:
            case "sqlite":
                return SQLiteStore(self.address)
            case "postgresql":
                return PostgreSQLStore(self.address)
        return MongoDBStore(self.address)

    def settle(self) -> None:
        """What the database does by itself within a minute or so: until PostgreSQL has analyzed a table that has grown,
        it uses plans that were made for an empty one."""
        if self.backend == "postgresql":
            with psycopg.connect(self.address, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")


def fill(
    place: Place, collection: str, there: int, size: int, *, vectors: bool = False, owner: str | None = None
) -> float:
    """Add the chunks from number ``there`` on, and let the database settle; the seconds of adding."""
    works = [(place, collection, share, vectors, owner) for share in _shares(there, size)]
    started = time.perf_counter()
    if len(works) == 1:
        _add(*works[0])
    else:
        with get_context("spawn").Pool(len(works)) as processes:
            processes.starmap(_add, works, chunksize=1)
    spent = time.perf_counter() - started
    place.settle()
    return spent


def _add(place: Place, collection: str, share: range, vectors: bool, owner: str | None) -> None:
    language = Language(seed=share.start + 2)
    with place.open() as store:
        knowledge = KnowledgeStore(store, embedder=WordLlamaEmbedder() if vectors else None)
        for first in range(share.start, share.stop, _AT_ONCE):
            numbers = range(first, min(first + _AT_ONCE, share.stop))
            knowledge.add(collection, [language.chunk(number) for number in numbers], owner=owner)


def _shares(there: int, size: int) -> Iterator[range]:
    processes = 1 if size - there <= _ALONE else os.cpu_count() or 1
    each = -(-(size - there) // processes)
    for start in range(there, size, each):
        yield range(start, min(start + each, size))
