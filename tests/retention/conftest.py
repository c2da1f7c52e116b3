"""A store of each kind with nothing in it, in both modes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from firefly_memory import (
    EntryStore,
    FileStore,
    InMemoryStore,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    adapt,
)
from tests.support.backends import Place
from tests.support.empty_store import opened_empty
from tests.support.folder_backend import FolderStore

KINDS = ["memory", "file", "sqlite", "asyncpg", "psycopg", "mongodb", "five methods"]


def store_of(kind: str, place: Place) -> EntryStore:
    """On servers: a schema or database that only these tests use; no connection is opened before a test needs it."""
    match kind:
        case "memory":
            return InMemoryStore()
        case "file":
            return FileStore(place.directory / "files")
        case "sqlite":
            return SQLiteStore(place.directory / "memory.db")
        case "mongodb":
            return MongoDBStore(place.mongodb(), database="retention")
        case "five methods":
            return adapt(FolderStore(place.directory / "five"))
        case driver:
            return PostgreSQLStore(place.with_driver(driver), schema_name="retention", pool_min_size=0)


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[EntryStore]:
    async with opened_empty(store_of(request.param, place), "retention") as store:
        yield store
