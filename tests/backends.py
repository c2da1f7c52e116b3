"""The table of backends: a line each, and the whole conformance suite runs on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from tests.five_methods import DbmStore


@dataclass(frozen=True)
class Place:
    """Where stores of one test live. Servers are started when their URL is asked for."""

    directory: Path
    postgresql: Callable[[], str]
    mongodb: Callable[[], str]
    later: ExitStack

    def with_driver(self, driver: str) -> str:
        return self.postgresql().replace("postgresql://", f"postgresql+{driver}://")


@dataclass(frozen=True)
class Backend:
    name: str
    open: Callable[[Place], MemoryStore]
    capabilities: frozenset[Capability] = frozenset(Capability)

    def __str__(self) -> str:
        return self.name


def _motor(place: Place) -> MemoryStore:
    from motor.motor_asyncio import AsyncIOMotorClient

    client: Any = AsyncIOMotorClient(place.mongodb())
    place.later.callback(client.close)
    return MongoDBStore(client=client, collection="motor")


ALL = frozenset(Capability)
OF_THE_PROCESS = ALL - {Capability.DURABLE, Capability.SHARED}

BACKENDS = [
    Backend("memory", lambda _: InMemoryStore(), OF_THE_PROCESS),
    Backend("file", lambda place: FileStore(place.directory / "files"), ALL - {Capability.UNIQUE_IDS}),
    Backend("sqlite", lambda place: SQLiteStore(place.directory / "new" / "memory.db")),
    Backend("sqlite-memory", lambda _: SQLiteStore(":memory:"), OF_THE_PROCESS),
    Backend("postgresql-asyncpg", lambda place: PostgreSQLStore(place.with_driver("asyncpg"))),
    Backend("postgresql-psycopg", lambda place: PostgreSQLStore(place.with_driver("psycopg"))),
    Backend("mongodb", lambda place: MongoDBStore(place.mongodb())),
    Backend("mongodb-motor", _motor),
    Backend(
        "five-methods",
        lambda place: adapt(DbmStore(place.directory / "five.dbm"), {Capability.DURABLE}),
        frozenset({Capability.DURABLE}),
    ),
]

BY_NAME = {backend.name: backend for backend in BACKENDS}
