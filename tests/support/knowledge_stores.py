"""Stores of knowledge for tests, a line for each kind."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from string import ascii_lowercase
from typing import Any
from uuid import uuid4

import psycopg
import pymongo
import pytest

from firefly_memory import (
    EntryStore,
    InMemoryStore,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
)
from firefly_memory.errors import EmbedderError
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.knowledge.rows import row_of
from firefly_memory.search.embedders.adapters import CallableEmbedder
from firefly_memory.search.embedders.protocol import Purpose, StaticEmbedder, Vector
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.backends import Place
from tests.support.spare_places import lent_database, lent_schema

Open = Callable[[Place, Path, str], EntryStore]


def _on_postgresql(place: Place, driver: str, name: str) -> EntryStore:
    """No connection is opened before a test needs it."""
    return PostgreSQLStore(place.with_driver(driver), schema_name=name, pool_min_size=0)


STORES: dict[str, Open] = {
    "memory": lambda _, __, ___: InMemoryStore(),
    "sqlite": lambda place, file, _: SQLiteStore(shutil.copy(file, place.directory / "memory.db")),
    "asyncpg": lambda place, _, name: _on_postgresql(place, "asyncpg", name),
    "psycopg": lambda place, _, name: _on_postgresql(place, "psycopg", name),
    "mongodb": lambda place, _, name: MongoDBStore(place.mongodb(), database=name),
}
"""A line for each kind of store, with the name of a schema or database."""

COMMON = "knowledge_of_tests"
"""The schema or database that the tests share. Each test has a space of its own in it."""

IN_EACH = pytest.mark.parametrize(("kind", "mode"), [(kind, mode) for kind in STORES for mode in Mode])
IN_ONE_SERVER = pytest.mark.parametrize(
    ("kind", "mode"), [(kind, mode) for kind in STORES if kind != "psycopg" for mode in Mode]
)

Make = Callable[..., Memory]


@pytest.fixture
async def make(kind: str, mode: Mode, place: Place, new_sqlite_file: Path) -> AsyncIterator[Make]:
    """Makes a ``KnowledgeStore`` of this test's own space, all of whose methods are to be awaited."""
    async with STORES[kind](place, new_sqlite_file, COMMON) as store:
        yield made_in(store, mode, uuid4().hex)


def made_in(store: EntryStore, mode: Mode, space: str = "") -> Make:
    return lambda **options: Memory(KnowledgeStore(store, **{"space": space, **options}), mode)


@pytest.fixture
async def new_store(kind: str, place: Place, new_sqlite_file: Path) -> AsyncIterator[EntryStore]:
    """A store in which nobody has decided a language."""
    with of_its_own(kind, place) as name:
        async with STORES[kind](place, new_sqlite_file, name) as store:
            yield store


def dropped(kind: str, place: Place, name: str) -> None:
    if kind == "mongodb":
        with pymongo.MongoClient[dict[str, Any]](place.mongodb()) as client:
            client.drop_database(name)
    elif kind in ("asyncpg", "psycopg"):
        with psycopg.connect(place.postgresql(), autocommit=True) as server:
            server.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


def of_its_own(kind: str, place: Place) -> AbstractContextManager[str]:
    """The name of a schema or database that has nothing in it."""
    if kind == "mongodb":
        return lent_database(place.mongodb())
    return lent_schema(place.postgresql()) if kind in ("asyncpg", "psycopg") else nullcontext("")


async def found(knowledge: Memory, question: str, mode: str = "best", **options: Any) -> list[str]:
    return [hit.text for hit in await knowledge.search("notes", question, 100, mode, **options)]


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name.startswith("firefly_memory")]


def letters(text: str) -> list[float]:
    """How often each letter is there."""
    return [float(text.lower().count(letter)) for letter in ascii_lowercase]


class Letters(StaticEmbedder):
    """A static embedder without a table."""

    name = "letters"
    dimensions = 26

    def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return [letters(text) for text in texts]

    async def async_embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Sequence[Vector]:
        return self.embed(texts)

    def embed_weighted(self, pieces: Sequence[tuple[str, float]]) -> Vector:
        return letters("".join(text for text, _ in pieces))


class Broken:
    """A function that embeds until it is broken, and again when it is mended."""

    def __init__(self) -> None:
        self.calls = 0
        self.broken_after: float = 0
        self.error: BaseException = EmbedderError("letters", "it is broken")

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        if self.calls >= self.broken_after:
            raise self.error
        self.calls += 1
        return [letters(text) for text in texts]

    def mend(self) -> None:
        self.broken_after = float("inf")


def of_function(function: Any = None, *, dimensions: int = 26, queries: Any = None) -> CallableEmbedder:
    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [letters(text)[:dimensions] for text in texts]

    return CallableEmbedder(function or embed, queries=queries, name="letters", dimensions=dimensions)


def row(text: str, language: str) -> Any:
    place: dict[str, Any] = {"space": "", "collection": "notes", "owner": None, "source": None, "position": 0}
    return row_of(Chunk(text), created_at=datetime.now(UTC), language=language, **place)
