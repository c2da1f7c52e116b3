"""The service in both modes, on a store of each kind with nothing in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from firefly_memory import (
    EntryStore,
    FileStore,
    InMemoryStore,
    MemoryStore,
    MongoDBStore,
    PostgreSQLStore,
    SQLiteStore,
    service,
)
from firefly_memory.service import Row, RowPage, Size, Stats
from firefly_memory.testing import Mode
from tests.support.backends import Place
from tests.support.empty_store import opened_empty

KINDS = ["memory", "file", "sqlite", "asyncpg", "psycopg", "mongodb"]


class Look:
    """The functions of the service for one store, in one mode."""

    def __init__(self, store: MemoryStore, mode: Mode) -> None:
        self.store = store
        self._mode = mode

    async def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        if self._mode is Mode.BLOCKING:
            return getattr(service, name)(self.store, *arguments, **options)
        return await getattr(service, f"async_{name}")(self.store, *arguments, **options)

    async def page(self, kind: str, **options: Any) -> RowPage:
        page: RowPage = await self._call("list", kind, **options)
        return page

    async def rows(self, kind: str, limit: int = 50, where: Mapping[str, Any] | None = None) -> list[Row]:
        """All rows, page by page."""
        found: list[Row] = []
        after: str | None = None
        while True:
            page = await self.page(kind, where=where, limit=limit, after=after)
            assert len(page) <= limit
            found += page
            after = page.next
            if after is None:
                return found

    async def get(self, kind: str, row_id: str) -> Row | None:
        row: Row | None = await self._call("get", kind, row_id)
        return row

    async def count(self, kind: str, **options: Any) -> Size:
        size: Size = await self._call("count", kind, **options)
        return size

    async def delete(self, kind: str, *arguments: Any, **options: Any) -> int:
        deleted: int = await self._call("delete", kind, *arguments, **options)
        return deleted

    async def stats(self) -> dict[str, Stats]:
        return {each.kind: each for each in await self._call("stats")}


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
            return MongoDBStore(place.mongodb(), database="looking")
        case driver:
            return PostgreSQLStore(place.with_driver(driver), schema_name="looking", pool_min_size=0)


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[EntryStore]:
    async with opened_empty(store_of(request.param, place), "looking") as store:
        yield store


@pytest.fixture(params=Mode)
def look(request: pytest.FixtureRequest, store: EntryStore) -> Look:
    return Look(store, request.param)
