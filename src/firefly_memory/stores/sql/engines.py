"""Engines of our own: tuned for operations of one statement, one per driver and colour.

Autocommit, nothing sent when a connection goes back to the pool, no ping before each use: every such courtesy is a
round trip. Operations end what they begin, and a connection that turns out to be dead is replaced (``pool.py``).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import QueuePool

from firefly_memory.errors import MissingDependencyError
from firefly_memory.stores.sql.urls import PostgreSQLUrl

APPLICATION_NAME = "firefly-memory"

IN_MEMORY = ":memory:"

_OPTIONS: dict[str, Any] = {
    "isolation_level": "AUTOCOMMIT",
    "pool_reset_on_return": None,
    "skip_autocommit_rollback": True,
    "max_overflow": 0,
}


def blocking_postgresql(url: PostgreSQLUrl, *, pool_size: int, timeout: float) -> Engine:
    """psycopg, whatever driver the URL names: asyncpg cannot block."""
    psycopg = _driver("psycopg", "a PostgreSQL store's blocking methods")
    connect = partial(_timed(psycopg.Connection, timeout).connect, **_psycopg_arguments(url, timeout))
    return create_engine(
        "postgresql+psycopg://",
        creator=connect,
        pool_size=pool_size,
        pool_timeout=timeout,
        use_native_hstore=False,  # saves a query on each first connection
        **_OPTIONS,
    )


def suspending_postgresql(url: PostgreSQLUrl, *, pool_size: int, timeout: float) -> Engine:
    """An engine for use inside ``greenlet_spawn``: asyncpg, or psycopg where the URL asks for what only it can do."""
    if url.driver == "psycopg" or (url.driver is None and url.only_libpq_understands):
        psycopg = _driver("psycopg", "this PostgreSQL URL")
        connection_class = _timed_async(psycopg.AsyncConnection, timeout)
        connect = partial(connection_class.connect, **_psycopg_arguments(url, timeout))
        return _suspending("psycopg_async", connect, pool_size, timeout, use_native_hstore=False)
    asyncpg = _driver("asyncpg", "a PostgreSQL store's asynchronous methods")
    arguments = url.for_asyncpg()
    connect = partial(
        asyncpg.connect,
        **arguments,
        timeout=url.connect_timeout or timeout,
        command_timeout=timeout,
        server_settings=None if "application_name" in url.parameters else {"application_name": APPLICATION_NAME},
    )
    return _suspending("asyncpg", connect, pool_size, timeout)


def _suspending(driver: str, connect: Callable[[], Any], pool_size: int, timeout: float, **options: Any) -> Engine:
    # What create_async_engine() does, without importing SQLAlchemy's ORM as its package would.
    def creator() -> Any:
        return engine.dialect.loaded_dbapi.connect(async_creator_fn=connect)

    engine = create_engine(
        f"postgresql+{driver}://",
        creator=creator,
        pool_size=pool_size,
        pool_timeout=timeout,
        **options,
        **_OPTIONS,
    )
    return engine


def _psycopg_arguments(url: PostgreSQLUrl, timeout: float) -> dict[str, Any]:
    quiet_line = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
    defaults = {"connect_timeout": str(max(2, round(timeout))), "application_name": APPLICATION_NAME, **quiet_line}
    return defaults | url.for_psycopg()


def _timed(connection_class: Any, statement_timeout: float) -> Any:
    """psycopg waits for ever by default; a server that is frozen would freeze its callers."""

    class TimedConnection(connection_class):  # type: ignore[misc]
        def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
            return super().wait(gen, interval, statement_timeout if timeout is None else timeout)

    return TimedConnection


def _timed_async(connection_class: Any, statement_timeout: float) -> Any:
    class TimedAsyncConnection(connection_class):  # type: ignore[misc]
        async def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
            return await super().wait(gen, interval, statement_timeout if timeout is None else timeout)

    return TimedAsyncConnection


def _driver(name: str, purpose: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as exc:
        raise MissingDependencyError(purpose, name, "postgres") from exc


def sqlite(path: str, *, pool_size: int, timeout: float, synchronous: str) -> Engine:
    """SQLite for threads: WAL, so that readers and the writer do not wait for each other; waiting instead of failing."""

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
        **_OPTIONS,
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
