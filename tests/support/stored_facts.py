"""Stores with long-term memory, for the tests of what the registry asks of the facet."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from firefly_memory import EntryStore, InMemoryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.longterm.log import LONG_TERM_LOG, LongTermLog
from firefly_memory.longterm.rows import FactRow, UserRow, VersionRow
from tests.support.backends import Place

KINDS = ["memory", "sqlite", "asyncpg", "mongodb"]

START = datetime(2026, 5, 6, 7, 8, 9, 101_112, tzinfo=UTC)


@asynccontextmanager
async def opened(kind: str, place: Place, new_sqlite_file: Path, name: str) -> AsyncIterator[EntryStore]:
    """A store without long-term memory. On servers, each ``name`` has a schema or database, which its tests leave
    empty."""
    async with _store(kind, place, new_sqlite_file, name) as store:
        await emptied(store)
        yield store
        await emptied(store)


def _store(kind: str, place: Place, new_sqlite_file: Path, name: str) -> EntryStore:
    match kind:
        case "memory":
            return InMemoryStore()
        case "sqlite":
            return SQLiteStore(shutil.copy(new_sqlite_file, place.directory / f"{name}.db"))
        case "mongodb":
            return MongoDBStore(place.mongodb(), database=name)
        case driver:
            return PostgreSQLStore(place.with_driver(driver), schema_name=name, pool_min_size=0)


def log_of(store: EntryStore) -> LongTermLog:
    return store.suspending.log(LONG_TERM_LOG)


async def emptied(store: EntryStore) -> None:
    log = log_of(store)
    while facts := await log.facts.page(100, ""):
        await log.facts.delete([row.id for row in facts])
    while people := await log.people.page(100, ""):
        await log.people.delete([row.id for row in people])


Kept = tuple[list[FactRow], list[VersionRow], list[UserRow]]


async def kept(store: EntryStore) -> Kept:
    """All facts, versions and people, by their ids, without what tells a write from another."""
    log = log_of(store)
    facts = [row._replace(written_by="", words=tuple(row.words)) for row in await log.facts.page(1_000, "")]
    people = [row._replace(written_by="") for row in await log.people.page(1_000, "")]
    return facts, [*await log.facts.page_of_versions(1_000, ("", 0))], people


async def keys(store: EntryStore) -> list[Any]:
    """The keys of all facts, sorted."""
    return sorted(row.key for row in await log_of(store).facts.page(1_000, ""))
