"""Processes that write to a location, or subscribe to it."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

from firefly_memory import EntryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.feeds.message_stores import MongoMessageStore, SQLMessageStore, StoredMessages
from tests.support.backends import Place
from tests.support.workers import Worker

PROCESSES_SHARE = ["sqlite", "asyncpg", "psycopg", "mongodb"]
NAME = "subscriptions"
"""The schema or database."""


def where(kind: str, place: Place) -> str:
    match kind:
        case "sqlite":
            return str(place.directory / "memory.db")
        case "mongodb":
            return place.mongodb()
        case driver:
            return place.with_driver(driver)


def opened(kind: str, url: str, **options: Any) -> EntryStore:
    match kind:
        case "sqlite":
            return SQLiteStore(Path(url))
        case "mongodb":
            return MongoDBStore(url, database=NAME)
        case _:
            return PostgreSQLStore(url, schema_name=NAME, **options)


def notifying(store: EntryStore) -> StoredMessages:
    """The message store on it whose writes notify, where the database can do that."""
    return MongoMessageStore(store) if isinstance(store, MongoDBStore) else SQLMessageStore(store, notify=True)


def a_writer(kind: str, url: str, location: str) -> Worker:
    """It appends as many messages as each line says, and prints the last number."""
    return Worker(__name__, "write", kind, url, location)


def a_subscriber(kind: str, url: str, location: str, after: int, count: int) -> Worker:
    """It prints the numbers of ``count`` items."""
    return Worker(__name__, "subscribe", kind, url, location, after, count)


def told(worker: Worker, count: int) -> None:
    worker.stdin.write(f"{count}\n")
    worker.stdin.flush()


def main() -> None:
    work, kind, url, location, *numbers = sys.argv[1:]
    if work == "subscribe":
        after, count = map(int, numbers)
        print(json.dumps(asyncio.run(_subscribed(kind, url, location, after, count))))
        return
    with opened(kind, url) as store:
        messages = notifying(store)
        messages.get_items(location, limit=1)
        print("ready", flush=True)
        for line in sys.stdin:
            for _ in range(int(line)):
                number = messages.append(location, {"type": "task"})
            print(number, flush=True)


async def _subscribed(kind: str, url: str, location: str, after: int, count: int) -> list[int]:
    async with opened(kind, url) as store, aclosing(notifying(store).subscribe(location, after)) as items:
        return [(await anext(items)).number for _ in range(count)]
