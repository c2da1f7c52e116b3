"""Where the benchmarks run: for each backend a store of ours, and the same empty tables for its bare driver."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pymongo

from firefly_memory import EntryStore, MongoDBStore, PostgreSQLStore, SQLiteStore

BARE = "bare"
"""The PostgreSQL schema and the MongoDB database of the bare drivers."""


@dataclass(frozen=True)
class Places:
    directory: Path
    postgresql_url: str
    mongodb_url: str
    only: str
    """One backend, or nothing for all of them."""

    @property
    def ours_path(self) -> Path:
        return self.directory / "ours.db"

    @property
    def bare_path(self) -> Path:
        return self.directory / "bare.db"

    @asynccontextmanager
    async def stores(self) -> AsyncIterator[dict[str, EntryStore]]:
        """Our stores by the names of their backends, with the same indexes on both sides."""
        stores: dict[str, EntryStore] = {}
        if self.only in "sqlite":
            for path in (self.ours_path, self.bare_path):
                with SQLiteStore(path):
                    pass
            stores["sqlite"] = SQLiteStore(self.ours_path)
        if self.only in "postgresql":
            with PostgreSQLStore(self.postgresql_url, schema_name=BARE):
                pass
            stores["postgresql"] = PostgreSQLStore(self.postgresql_url)
        if self.only in "mongodb":
            with MongoDBStore(self.mongodb_url, database=BARE):
                pass
            stores["mongodb"] = MongoDBStore(self.mongodb_url)
        try:
            for store in stores.values():
                store.initialize_sync()
                await store.initialize()
            yield stores
        finally:
            for store in stores.values():
                await store.close()

    def settle(self) -> None:
        """Let the servers digest a large load, so that it does not disturb what is measured next."""
        if self.only in "postgresql":
            with psycopg.connect(self.postgresql_url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
                connection.execute("CHECKPOINT")
        if self.only in "mongodb":
            client: pymongo.MongoClient[Any]
            with pymongo.MongoClient(self.mongodb_url) as client:
                client.admin.command("fsync")
