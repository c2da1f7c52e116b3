"""What the index of a chunk costs when the chunk is written.

Three sides take turns in one run: ``add()`` as it is; ``add()`` without a vector into tables whose objects of the
search were dropped: the full-text table, the indexes of words, places, dates and people; and the bare driver, which
inserts what the library has written, under other ids, into these tables. All wait for the disk in the same way.
"""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import cycle
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pymongo
from psycopg import sql
from pymongo import WriteConcern

from benchmarks.harness import interleaved
from benchmarks.search_report import Cost
from benchmarks.search_texts import Language
from firefly_memory import EntryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.knowledge.log import CHUNKS, ChunkRow
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder
from firefly_memory.search.mongodb.documents import row_indexes
from firefly_memory.search.sql.objects import index_objects

_WORDS = 60
_THERE = 1_000
"""Chunks that are there before anything is measured."""
_SINGLE, _MANY = 100, 1_000
_BARE = "bare"
_COLLECTION = "texts"


class Bare(ABC):
    """A driver, and the database that it writes to."""

    @abstractmethod
    def drop_index(self) -> None:
        """Drop what the search needs."""

    @abstractmethod
    def rows(self) -> list[Any]:
        """All chunks as they are stored."""

    @abstractmethod
    def insert(self, row: Any) -> None: ...

    @abstractmethod
    def insert_many(self, rows: Sequence[Any]) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


_OF_SEARCH = ("idx_chunks_scope", "idx_chunks_words")
_COLUMNS = ChunkRow._fields


class _SQLite(Bare):
    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous=FULL")
        self._insert = f"INSERT INTO {CHUNKS.table} ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"

    def drop_index(self) -> None:
        for each in reversed(index_objects(CHUNKS)):
            self._connection.execute(each.drop)
        for name in _OF_SEARCH:
            self._connection.execute(f"DROP INDEX IF EXISTS {name}")

    def rows(self) -> list[Any]:
        return self._connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM {CHUNKS.table}").fetchall()

    def insert(self, row: Any) -> None:
        self._connection.execute(self._insert, (_new_id(), *row[1:]))

    def insert_many(self, rows: Sequence[Any]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(self._insert, [(_new_id(), *row[1:]) for row in rows])
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class _PostgreSQL(Bare):
    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._table = sql.Identifier(_BARE, CHUNKS.table)
        self._columns = sql.SQL(", ").join(map(sql.Identifier, _COLUMNS))
        values = sql.SQL(", ").join([sql.Placeholder()] * len(_COLUMNS))
        self._insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(self._table, self._columns, values)

    def drop_index(self) -> None:
        for name in _OF_SEARCH:
            self._connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(_BARE, name)))

    def rows(self) -> list[Any]:
        select = sql.SQL("SELECT {} FROM {}").format(self._columns, self._table)
        return self._connection.execute(select).fetchall()

    def insert(self, row: Any) -> None:
        self._connection.execute(self._insert, (_new_id(), *row[1:]))

    def insert_many(self, rows: Sequence[Any]) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(self._insert, [(_new_id(), *row[1:]) for row in rows])

    def close(self) -> None:
        self._connection.close()


class _MongoDB(Bare):
    def __init__(self, url: str) -> None:
        self._client: pymongo.MongoClient[Any] = pymongo.MongoClient(url)
        durable = WriteConcern("majority", j=True)
        self._chunks = self._client[_BARE].get_collection(CHUNKS.table, write_concern=durable)

    def drop_index(self) -> None:
        for each in row_indexes(CHUNKS):
            self._chunks.drop_index(each.document["name"])

    def rows(self) -> list[Any]:
        return list(self._chunks.find({"collection": _COLLECTION}))

    def insert(self, row: Any) -> None:
        self._chunks.insert_one({**row, "_id": _new_id()})

    def insert_many(self, rows: Sequence[Any]) -> None:
        self._chunks.insert_many([{**row, "_id": _new_id()} for row in rows], ordered=False)

    def close(self) -> None:
        self._client.close()


def _new_id() -> str:
    return uuid4().hex


class Sides(NamedTuple):
    """Stores with the index and without, and the driver of the latter."""

    with_index: EntryStore
    without_index: EntryStore
    bare: Callable[[], Bare]


def sides(name: str, address: str) -> Sides:
    """Two stores in a place: for SQLite two files."""
    match name:
        case "sqlite":
            path = f"{address}-bare"
            return Sides(SQLiteStore(address), SQLiteStore(path), lambda: _SQLite(path))
        case "postgresql":
            without = PostgreSQLStore(address, schema_name=_BARE)
            return Sides(PostgreSQLStore(address), without, lambda: _PostgreSQL(address))
    return Sides(MongoDBStore(address), MongoDBStore(address, database=_BARE), lambda: _MongoDB(address))


def costs(name: str, places: Sides, rounds: int) -> Iterator[Cost]:
    """What a chunk costs, and what many at once cost."""
    language = Language()
    chunks = _numbered(language)
    with ExitStack() as opened:
        ours, without = (opened.enter_context(each) for each in (places.with_index, places.without_index))
        plain = KnowledgeStore(without, embedder=None)
        plain.add(_COLLECTION, [next(chunks) for _ in range(_THERE)])
        bare = opened.enter_context(closing(places.bare()))
        bare.drop_index()
        rows = bare.rows()
        for embedder in (None, WordLlamaEmbedder()):
            indexed = KnowledgeStore(ours, embedder=embedder)
            indexed.add(_COLLECTION, [next(chunks) for _ in range(_THERE)])
            for many in (1, _MANY):
                yield _cost(name, many, indexed, plain, bare, rows, chunks, rounds)


def _numbered(language: Language) -> Iterator[Chunk]:
    number = 0
    while True:
        yield language.chunk(number, _WORDS)
        number += 1


def _cost(
    name: str,
    many: int,
    indexed: KnowledgeStore,
    plain: KnowledgeStore,
    bare: Bare,
    rows: Sequence[Any],
    chunks: Iterator[Chunk],
    rounds: int,
) -> Cost:
    operations = _SINGLE if many == 1 else 1
    needed = operations * (rounds + 1)
    batches = {side: iter([[next(chunks) for _ in range(many)] for _ in range(needed)]) for side in ("ours", "plain")}

    async def ours() -> None:
        indexed.add(_COLLECTION, next(batches["ours"]))

    async def without_index() -> None:
        plain.add(_COLLECTION, next(batches["plain"]))

    inserted = cycle(rows)

    async def driver() -> None:
        if many == 1:
            bare.insert(next(inserted))
        else:
            bare.insert_many(rows[:many])

    works = {"ours": ours, "without": without_index, "bare": driver}
    spent = asyncio.run(interleaved(works, operations=operations, rounds=rounds))
    milliseconds = [spent[side] / 1_000 for side in works]
    return Cost(name, many, indexed.embedder is not None, *milliseconds)
