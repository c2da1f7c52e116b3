"""Databases that were opened by URL or path: they own their engines, one pool for each mode that is used.

Engines are made on first use. One of an asynchronous driver belongs to the event loop it was made in, so each loop
has its own; after ``fork()`` a child makes new ones and leaves its parent's alone.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any

from firefly_memory.concurrency.per_event_loop import abandon
from firefly_memory.concurrency.process_fork import ForkAware
from firefly_memory.concurrency.unclosed import WarnsIfUnclosed
from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.pool import Pool
from firefly_memory.databases.sql.schema.migrate import ensure_schema
from firefly_memory.errors import StoreClosedError
from firefly_memory.validation import seconds

# Tuned for operations of one statement. Autocommit, nothing sent when a connection goes back to the pool, no ping
# before each use: every such courtesy is a round trip. Operations end what they begin, and a connection that turns
# out to be dead is replaced (``pool.py``).
ENGINE_OPTIONS: dict[str, Any] = {
    "isolation_level": "AUTOCOMMIT",
    "pool_reset_on_return": None,
    "skip_autocommit_rollback": True,
    "max_overflow": 0,
}


class Database(ForkAware, WarnsIfUnclosed, ABC):
    """What both kinds share: the blocking pool, and whether the schema has been looked at."""

    def __init__(self, db_name: DatabaseName, *, timeout: float, migrate: bool) -> None:
        self.db_name = db_name
        self.timeout: float = seconds("timeout", timeout)
        self._migrate = migrate
        self._closed = False
        self._pool: Pool | None = None
        self._lock = threading.Lock()
        self.schema_is_current = False
        self.warm_connections = 0
        self.watch_forks()

    def holds_resources(self) -> bool:
        return self._pool is not None and self._pool.has_connections()

    def described(self) -> str:
        return self.db_name.name

    def drop_resources(self) -> None:
        if self._pool is not None:
            self._pool.dispose()

    @abstractmethod
    def open_pool(self) -> Pool:
        """A new pool for blocking calls."""

    def after_fork_in_child(self) -> None:
        # Everything is opened anew when it is needed.
        abandon(self._pool)
        self._pool = None
        self._lock = threading.Lock()

    def check_open(self, operation: str) -> None:
        if self._closed:
            raise StoreClosedError(operation)

    def ready(self, operation: str) -> Pool:
        pool = self._pool
        return pool if pool is not None and self.schema_is_current else self._prepared(operation, None)

    def initialize(self, migrate: bool | None) -> None:
        pool = self._prepared("initialize", migrate)
        with self._lock:
            pool.warm_up(self.warm_connections)

    def _prepared(self, operation: str, migrate: bool | None) -> Pool:
        with self._lock:
            self.check_open(operation)
            if self._pool is None:
                self._pool = self.open_pool()
            if not self.schema_is_current:
                self.check_schema(self._pool, migrate)
            return self._pool

    def check_schema(self, pool: Pool, migrate: bool | None) -> None:
        ensure_schema(pool.engine, self.db_name, migrate=self.migrates(migrate), timeout=self.timeout)
        self.schema_is_current = True

    def migrates(self, asked: bool | None) -> bool:
        """Whether the schema is brought up to date, where a call may ask for it or against it."""
        return self._migrate if asked is None else asked

    def close(self) -> None:
        self.close_blocking()

    def close_blocking(self) -> None:
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
            if pool is not None:
                pool.dispose()
