"""The table of backends: a line each, and the whole conformance suite runs on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from firefly_memory import (
    Capability,
    FileStore,
    InMemoryStore,
    MemoryStore,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    adapt,
)
from firefly_memory.concurrency.per_event_loop import PerLoop
from firefly_memory.databases.mongodb.clients import MongoDatabase
from firefly_memory.testing import Mode
from tests.support.folder_backend import FolderStore


@dataclass(frozen=True)
class Place:
    """Where stores of one test live. Servers are started when their URL is asked for."""

    directory: Path
    postgresql: Callable[[], str]
    mongodb: Callable[[], str]
    later: ExitStack
    engine: Callable[[str], Engine] | None = None
    """An application's engine for the URL of a server, if the application lasts longer than the test."""
    looked_at: Callable[[str], MongoDatabase] | None = None
    """What a store that has looked at the indexes of a collection of entries knows, if the test is not about starts. To
    look at the indexes of all collections takes as long as most checks."""

    def with_driver(self, driver: str) -> str:
        return self.postgresql().replace("postgresql://", f"postgresql+{driver}://")


@dataclass(frozen=True)
class Backend:
    name: str
    open: Callable[[Place], MemoryStore]
    capabilities: frozenset[Capability] = frozenset(Capability)
    modes: tuple[Mode, ...] = tuple(Mode)

    def __str__(self) -> str:
        return self.name


def _motor(place: Place) -> MemoryStore:
    from motor.motor_asyncio import AsyncIOMotorClient

    client: Any = AsyncIOMotorClient(place.mongodb())
    place.later.callback(client.close)
    return _on_mongodb(MongoDBStore(client=client, collection="motor"), place)


def _on_mongodb(store: MongoDBStore, place: Place) -> MemoryStore:
    if place.looked_at is not None:
        known = place.looked_at(store.database.collection)
        store.database.has_transactions = known.has_transactions
        store.database.indexes_are_there = known.indexes_are_there
    return store


def _engine(url: str, place: Place) -> Engine:
    engine = create_engine(url)
    place.later.callback(engine.dispose)
    return engine


def _engine_of_server(driver: str, place: Place) -> Engine:
    url = place.with_driver(driver)
    return _engine(url, place) if place.engine is None else place.engine(url)


def _async_engine(url: str, place: Place) -> AsyncEngine:
    async def dispose(engine: AsyncEngine) -> None:
        await engine.dispose()

    of_the_loop = PerLoop(lambda: create_async_engine(url), dispose)  # disposed of when the loop of the check ends
    place.later.callback(lambda: of_the_loop)
    return of_the_loop.get()


ALL = frozenset(Capability)
OF_THE_PROCESS = ALL - {Capability.DURABLE, Capability.SHARED}

BACKENDS = [
    Backend("memory", lambda _: InMemoryStore(), OF_THE_PROCESS),
    Backend("file", lambda place: FileStore(place.directory / "files"), ALL - {Capability.UNIQUE_IDS}),
    Backend("sqlite", lambda place: SQLiteStore(place.directory / "new" / "memory.db")),
    Backend("sqlite-memory", lambda _: SQLiteStore(":memory:"), OF_THE_PROCESS),
    Backend("postgresql-asyncpg", lambda place: PostgreSQLStore(place.with_driver("asyncpg"), pool_min_size=0)),
    Backend("postgresql-psycopg", lambda place: PostgreSQLStore(place.with_driver("psycopg"), pool_min_size=0)),
    Backend("mongodb", lambda place: _on_mongodb(MongoDBStore(place.mongodb()), place)),
    Backend("mongodb-motor", _motor),
    # An engine that is the caller's.
    Backend("sqlite-engine", lambda place: SQLiteStore(engine=_engine(f"sqlite:///{place.directory}/own.db", place))),
    Backend(
        "sqlite-aiosqlite",
        lambda place: SQLiteStore(engine=_async_engine(f"sqlite+aiosqlite:///{place.directory}/own.db", place)),
        modes=(Mode.SUSPENDING,),
    ),
    Backend(
        "postgresql-engine",
        lambda place: PostgreSQLStore(engine=_engine_of_server("psycopg", place), schema_name="own"),
    ),
    Backend(
        "postgresql-psycopg2-engine",
        lambda place: PostgreSQLStore(engine=_engine_of_server("psycopg2", place), schema_name="psycopg2"),
    ),
    Backend(
        "postgresql-async-engine",
        lambda place: PostgreSQLStore(engine=_async_engine(place.with_driver("asyncpg"), place), schema_name="own"),
        modes=(Mode.SUSPENDING,),
    ),
    Backend(
        "five-methods",
        lambda place: adapt(FolderStore(place.directory / "five"), {Capability.DURABLE}),
        frozenset({Capability.DURABLE}),
    ),
]

OWN = [backend for backend in BACKENDS if "engine" not in backend.name and backend.modes == tuple(Mode)]
"""Those whose connections are the store's own, opened by URL or path."""

BY_NAME = {backend.name: backend for backend in BACKENDS}
