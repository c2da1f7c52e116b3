"""Databases that were opened by URL or path: they own their engines, one pool for each colour that is used.

Engines are made on first use. One of an asynchronous driver belongs to the event loop it was made in, so each loop
has its own; after ``fork()`` a child makes new ones and leaves its parent's alone.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import Engine
from sqlalchemy.util import greenlet_spawn

from firefly_memory.errors import ConfigurationError, NotSupportedError, StoreClosedError
from firefly_memory.forks import renew_after_fork
from firefly_memory.stores.file_system import make_directory
from firefly_memory.stores.file_system import translated as files_translated
from firefly_memory.stores.loops import PerLoop, abandon
from firefly_memory.stores.records import Record
from firefly_memory.stores.sql import engines
from firefly_memory.stores.sql.dialects import PostgreSQLStatements, SQLiteStatements
from firefly_memory.stores.sql.migrate import checked_schema_name, ensure_schema
from firefly_memory.stores.sql.pool import Operation, Pool
from firefly_memory.stores.sql.runners import CallRunner, GroupingRunner, group_commit, here
from firefly_memory.stores.sql.urls import PostgreSQLUrl

P = ParamSpec("P")
T = TypeVar("T")


class Database(ABC):
    """What both kinds share: the blocking pool, and whether the schema has been looked at."""

    def __init__(self, place: str, schema_name: str | None, *, timeout: float, migrate: bool) -> None:
        if not timeout > 0:
            raise ConfigurationError(f"timeout must be a number of seconds above 0, not {timeout!r}")
        self.place = place
        self.schema_name = schema_name
        self.timeout = timeout
        self._migrate = migrate
        self._closed = False
        self._pool: Pool[Any] | None = None
        self._lock = threading.Lock()
        self.schema_is_current = False
        self.warm_connections = 0
        renew_after_fork(self, lambda database: database.start_afresh())

    @abstractmethod
    def open_pool(self) -> Pool[Any]:
        """A new pool for blocking calls."""

    def start_afresh(self) -> None:
        """In a forked child: open everything anew when it is needed."""
        abandon(self._pool)
        self._pool = None
        self._lock = threading.Lock()

    def check_open(self, operation: str) -> None:
        if self._closed:
            raise StoreClosedError(operation)

    def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        pool = self._pool
        if pool is None or not self.schema_is_current:
            pool = self._prepared(operation.__name__, None)
        return pool.run(operation, *args, **kwargs)

    def initialize(self, migrate: bool | None) -> None:
        self._prepared("initialize", migrate).warm_up(self.warm_connections)

    def _prepared(self, operation: str, migrate: bool | None) -> Pool[Any]:
        with self._lock:
            self.check_open(operation)
            if self._pool is None:
                self._pool = self.open_pool()
            if not self.schema_is_current:
                self.check_schema(self._pool, migrate)
            return self._pool

    def check_schema(self, pool: Pool[Any], migrate: bool | None) -> None:
        wanted = self._migrate if migrate is None else migrate
        ensure_schema(pool.engine, self.schema_name, self.place, migrate=wanted, timeout=self.timeout)
        self.schema_is_current = True

    def close(self) -> None:
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
            if pool is not None:
                pool.dispose()


# SQLite


class SQLiteDatabase(Database):
    """One file. Its asynchronous colour is worker threads on the same pool, several times faster than a driver that
    crosses to a thread and back for every step of a statement."""

    def __init__(self, path: str, *, timeout: float, synchronous: str, pool_size: int, migrate: bool) -> None:
        super().__init__(f"SQLite database {path}", None, timeout=timeout, migrate=migrate)
        self.path = path
        self._synchronous = synchronous
        self._pool_size = pool_size
        self._gate = threading.Lock()
        self._orphaned = False
        self._threads: ThreadPoolExecutor | None = None
        self._threads_lock = threading.Lock()
        self.blocking = CallRunner(self, here)
        self.suspending = GroupingRunner(self, self._in_thread)

    def open_pool(self) -> Pool[Any]:
        if self.path != engines.IN_MEMORY:
            directory = Path(self.path).parent
            with files_translated("opening", directory):
                make_directory(directory)
        engine = engines.sqlite(
            self.path, pool_size=self._pool_size, timeout=self.timeout, synchronous=self._synchronous
        )
        return Pool(engine, SQLiteStatements(engine.dialect, None), self.place, gate=self._gate)

    def start_afresh(self) -> None:
        super().start_afresh()
        abandon(self._threads)
        self._threads = None
        self._threads_lock = threading.Lock()
        self._gate = threading.Lock()
        self._orphaned = self.path == engines.IN_MEMORY

    def check_open(self, operation: str) -> None:
        super().check_open(operation)
        if self._orphaned:
            raise NotSupportedError(
                f"{operation}(): an in-memory SQLite database stays with the process that opened it; "
                "use a file, or open a store after fork()"
            )

    async def _in_thread(self, call: Callable[[], T]) -> T:
        if self._closed:
            return call()  # which says so, or has nothing left to do
        with self._threads_lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(min(4, self._pool_size), "firefly-memory-sqlite")
            threads = self._threads
        return await asyncio.get_running_loop().run_in_executor(threads, call)

    def close(self) -> None:
        super().close()
        with self._threads_lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False)


# PostgreSQL


class PostgreSQLDatabase(Database):
    """One server. Blocking calls go through psycopg, asynchronous ones through asyncpg, each with a pool of its own."""

    def __init__(
        self,
        url: PostgreSQLUrl,
        *,
        pool_size: int,
        pool_min_size: int,
        timeout: float,
        schema_name: str,
        migrate: bool,
    ) -> None:
        super().__init__(str(url), checked_schema_name(schema_name), timeout=timeout, migrate=migrate)
        if pool_size < 1 or pool_min_size < 0:
            raise ConfigurationError("pool_size must be at least 1 and pool_min_size at least 0")
        self._url = url
        self._pool_size = pool_size
        self.warm_connections = min(pool_min_size, pool_size)
        self.blocking = CallRunner(self, here)
        self.suspending = _LoopRunner(self)

    def open_pool(self) -> Pool[Any]:
        return self._pool_on(engines.blocking_postgresql)

    def open_suspending_pool(self) -> Pool[Any]:
        return self._pool_on(engines.suspending_postgresql)

    def _pool_on(self, make_engine: Callable[..., Engine]) -> Pool[Any]:
        engine = make_engine(self._url, pool_size=self._pool_size, timeout=self.timeout)
        return Pool(engine, PostgreSQLStatements(engine.dialect, self.schema_name), self.place)


class _Lane:
    """What one event loop has of a database: a pool, and the saves that are put together."""

    def __init__(self, pool: Pool[Any]) -> None:
        self.pool = pool
        self.group = group_commit(self)
        self.preparing = asyncio.Lock()

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await greenlet_spawn(partial(self.pool.run, operation, *args, **kwargs))

    async def close(self) -> None:
        await greenlet_spawn(self.pool.dispose)


class _LoopRunner:
    """Runs operations on the pool of the event loop it is called from."""

    def __init__(self, database: PostgreSQLDatabase) -> None:
        self._database = database
        self._lanes = PerLoop(lambda: _Lane(database.open_suspending_pool()), _Lane.close)

    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        lane = await self._lane(operation.__name__)
        return await lane.run(operation, *args, **kwargs)

    async def save(self, record: Record, now: datetime) -> None:
        lane = await self._lane("save")
        await lane.group.save(record, now)

    async def initialize(self, migrate: bool | None) -> None:
        lane = await self._lane("initialize", migrate)
        await greenlet_spawn(lane.pool.warm_up, self._database.warm_connections)

    async def close(self) -> None:
        self._database.close()
        await self._lanes.close()

    async def _lane(self, operation: str, migrate: bool | None = None) -> _Lane:
        database = self._database
        database.check_open(operation)
        lane = self._lanes.get()
        if not database.schema_is_current:
            async with lane.preparing:
                if not database.schema_is_current:
                    await greenlet_spawn(database.check_schema, lane.pool, migrate)
        return lane
