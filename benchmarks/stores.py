"""What is compared with what: for each backend and colour a store of ours, and the bare driver beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pymongo

from benchmarks.bare import (
    Bare,
    BareAiosqlite,
    BareAsyncpg,
    BareBlockingMongoDB,
    BareMongoDB,
    BarePsycopg,
    BareSQLite,
)
from firefly_memory import EntryStore, MongoDBStore, PostgreSQLStore, SQLiteStore, StoreView


@dataclass(frozen=True)
class Pair:
    name: str
    view: StoreView
    bare: Bare
    single_aim: float
    single_limit: float
    concurrent: bool = True


@asynccontextmanager
async def pairs(directory: Path, postgresql_url: str, mongodb_url: str, only: str) -> AsyncIterator[list[Pair]]:
    """Open everything, on empty tables with the same indexes on both sides."""
    found: list[Pair] = []
    stores: list[EntryStore] = []

    def opened(store: EntryStore) -> EntryStore:
        stores.append(store)
        return store

    if only in "sqlite":
        for name in ("ours.db", "bare.db"):
            with SQLiteStore(directory / name):
                pass
        store = opened(SQLiteStore(directory / "ours.db"))
        found.append(Pair("sqlite sync", store.blocking, BareSQLite(directory / "bare.db"), 2.0, 4.0, concurrent=False))
        aiosqlite = await BareAiosqlite.open(directory / "bare.db")
        found.append(Pair("sqlite async", store.suspending, aiosqlite, 1.3, 2.0))
    if only in "postgresql":
        with PostgreSQLStore(postgresql_url, schema_name="bare"):
            pass
        store = opened(PostgreSQLStore(postgresql_url))
        found.append(Pair("postgresql async", store.suspending, await BareAsyncpg.open(postgresql_url), 1.2, 1.5))
        found.append(Pair("postgresql sync", store.blocking, BarePsycopg(postgresql_url), 1.2, 1.5, concurrent=False))
    if only in "mongodb":
        with MongoDBStore(mongodb_url, database="bare"):
            pass
        store = opened(MongoDBStore(mongodb_url))
        found.append(Pair("mongodb async", store.suspending, BareMongoDB(mongodb_url), 1.2, 1.5))
        found.append(Pair("mongodb sync", store.blocking, BareBlockingMongoDB(mongodb_url), 1.2, 1.5, concurrent=False))
    for pair in found:
        await pair.view.initialize()
    try:
        yield found
    finally:
        for pair in found:
            await pair.bare.close()
        for store in stores:
            await store.close()


def settle(postgresql_url: str, mongodb_url: str, only: str) -> None:
    """Let the servers digest a large load, so that it does not disturb what is measured next."""
    if only in "postgresql":
        with psycopg.connect(postgresql_url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")
    if only in "mongodb":
        client: pymongo.MongoClient[Any]
        with pymongo.MongoClient(mongodb_url) as client:
            client.admin.command("fsync")
