"""An SQLite file in both colours."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import unquote

from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import QueuePool

from firefly_memory.errors import ConfigurationError, NotSupportedError, StoreTimeoutError
from firefly_memory.forks import ForkBarrier
from firefly_memory.options import at_least
from firefly_memory.stores.file_system import make_directory, translated
from firefly_memory.stores.loops import abandon
from firefly_memory.stores.sql.database import ENGINE_OPTIONS, Database
from firefly_memory.stores.sql.errors import Place
from firefly_memory.stores.sql.pool import Operation, Pool
from firefly_memory.stores.sql.runners import CallRunner, GroupingRunner, here
from firefly_memory.stores.sql.sqlite.statements import SQLiteStatements

P = ParamSpec("P")
T = TypeVar("T")

IN_MEMORY = ":memory:"


class _Gate:
    """Lets one writer of this process in at a time, so that writers wait here in turn instead of colliding in SQLite,
    and none for longer than the time-out."""

    def __init__(self, timeout: float) -> None:
        self._lock = threading.Lock()
        self._timeout = timeout

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=self._timeout):
            reason = f"other writers of this process kept the database for {self._timeout:g} seconds"
            raise StoreTimeoutError("waiting for SQLite", reason, retryable=True)

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class SQLiteDatabase(Database):
    """One file. Its asynchronous colour is worker threads on the same pool, several times faster than a driver that
    crosses to a thread and back for every step of a statement."""

    def __init__(self, path: str, *, timeout: float, synchronous: str, pool_size: int, migrate: bool) -> None:
        super().__init__(Place(f"SQLite database {path}"), timeout=timeout, migrate=migrate)
        self.path = path
        self._synchronous = synchronous
        self._pool_size = at_least(1, "pool_size", pool_size)
        self._gate = _Gate(self.timeout)
        self._barrier = ForkBarrier()
        self._orphaned = False
        self._threads: ThreadPoolExecutor | None = None
        self._threads_lock = threading.Lock()
        self.blocking = CallRunner(self, here)
        self.suspending = GroupingRunner(self, self._in_thread)

    def open_pool(self) -> Pool[Any]:
        if self.path != IN_MEMORY:
            directory = Path(self.path).parent
            with translated("opening", directory):
                make_directory(directory)
        engine = sqlite_engine(
            self.path, pool_size=self._pool_size, timeout=self.timeout, synchronous=self._synchronous
        )
        return Pool(engine, SQLiteStatements(engine.dialect, None), self.place, gate=self._gate)

    def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._barrier:
            return super().run(operation, *args, **kwargs)

    def initialize(self, migrate: bool | None) -> None:
        with self._barrier:
            super().initialize(migrate)

    def before_fork(self) -> None:
        # SQLite keeps what it knows of a file's locks in the process: a child that inherits an open file would take
        # its parent's locks for its own. So the file is closed while the process forks, and opened again afterwards.
        self._barrier.shut()
        if self._pool is not None and self.path != IN_MEMORY:
            self._pool.engine.dispose()

    def after_fork_in_parent(self) -> None:
        self._barrier.open()

    def after_fork_in_child(self) -> None:
        super().after_fork_in_child()
        abandon(self._threads)
        self._threads = None
        self._threads_lock = threading.Lock()
        self._gate = _Gate(self.timeout)
        self._barrier = ForkBarrier()
        self._orphaned = self.path == IN_MEMORY

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


def sqlite_engine(path: str, *, pool_size: int, timeout: float, synchronous: str) -> Engine:
    """SQLite for threads: WAL, so that readers and the writer go on together; waiting instead of failing."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
        try:
            if path != IN_MEMORY:
                _use_wal(connection, timeout)
            connection.execute(f"PRAGMA synchronous={synchronous}")
        except BaseException:
            connection.close()
            raise
        return connection

    return create_engine(
        "sqlite://",
        creator=connect,
        poolclass=QueuePool,
        pool_size=1 if path == IN_MEMORY else pool_size,
        pool_timeout=timeout,
        **ENGINE_OPTIONS,
    )


def _use_wal(connection: sqlite3.Connection, timeout: float) -> None:
    """Switching to WAL needs the file for itself and does not wait for it, so several starters take turns here."""
    deadline = time.monotonic() + timeout
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(0.005)


def sqlite_path(url: str) -> str:
    """The path in an URL such as ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or ``sqlite://`` (in memory)."""
    found = re.fullmatch(r"sqlite(?:\+aiosqlite|\+pysqlite)?://(?:/(?P<path>[^?]*))?(?P<query>\?.*)?", url)
    if found is None:
        raise ConfigurationError(
            f"{url!r} is not an SQLite URL this library reads; use sqlite:///relative.db, sqlite:////absolute.db "
            "or sqlite:///:memory:"
        )
    if found["query"]:
        raise ConfigurationError(f"{url!r}: an SQLite URL has no parameters here; pass them as options of the store")
    return unquote(found["path"] or "") or ":memory:"
