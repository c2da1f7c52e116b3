"""Stores with feeds, for the tests of what the registry asks of the facet."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from firefly_memory import EntryStore, InMemoryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.feeds.flows import FeedFlows
from firefly_memory.feeds.items import Items
from firefly_memory.feeds.log import FEED_LOG, Feed
from firefly_memory.identifiers import original_name, original_or_none
from firefly_memory.testing.clock import stopped
from tests.support.backends import Place

KINDS = ["memory", "sqlite", "asyncpg", "mongodb"]

START = datetime(2026, 5, 6, 7, 8, 9, 101_112, tzinfo=UTC)

Kept = list[tuple[Feed, Items]]


@asynccontextmanager
async def opened(kind: str, place: Place, new_sqlite_file: Path, name: str) -> AsyncIterator[EntryStore]:
    """A store without feeds. On servers, each ``name`` has a schema or database, which its tests leave empty."""
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


async def emptied(store: EntryStore) -> None:
    log = store.suspending.log(FEED_LOG)
    while feeds := await log.page(100, ""):
        for each in feeds:
            await log.delete(each.location)


async def append(store: EntryStore, location: str, *messages: dict[str, Any], owner: str | None = None) -> list[int]:
    return await FeedFlows(store.suspending).append(location, messages, owner, "messages[{}]")


async def append_days(store: EntryStore, location: str, *days: int, owner: str | None = None) -> None:
    """A message for each of ``days`` after the start."""
    for day in days:
        with stopped(START + timedelta(days=day)):
            await append(store, location, {"type": "task", "content": day, "agent_key": "a"}, owner=owner)


async def kept(store: EntryStore) -> Kept:
    """All feeds with all their items, in the form of callers."""
    log, flows = store.suspending.log(FEED_LOG), FeedFlows(store.suspending)
    found = []
    for feed in await log.page(1_000, ""):
        location, owner = original_name(feed.location), original_or_none(feed.owner)
        created_at, updated_at = log.read_instant(feed.created_at), log.read_instant(feed.updated_at)
        read = feed._replace(location=location, owner=owner, created_at=created_at, updated_at=updated_at)
        found.append((read, await flows.items(location, 0, None)))
    return found


def numbers(feeds: Kept) -> dict[str, list[int]]:
    """The numbers of the messages, by location."""
    return {feed.location: [each.number for each in items] for feed, items in feeds}
