"""Engines for PostgreSQL, one per driver and colour."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from sqlalchemy import Engine, create_engine

from firefly_memory.errors import MissingDependencyError
from firefly_memory.stores.sql.database import ENGINE_OPTIONS
from firefly_memory.stores.sql.postgresql.urls import PostgreSQLUrl

APPLICATION_NAME = "firefly-memory"


def blocking_engine(url: PostgreSQLUrl, *, pool_size: int, timeout: float) -> Engine:
    """psycopg, whatever driver the URL names: asyncpg cannot block."""
    psycopg = _driver("psycopg", "a PostgreSQL store's blocking methods")
    connect = partial(_timed(psycopg.Connection, timeout).connect, **_psycopg_arguments(url, timeout))
    return create_engine(
        "postgresql+psycopg://",
        creator=connect,
        pool_size=pool_size,
        pool_timeout=timeout,
        use_native_hstore=False,  # saves a query on each first connection
        **ENGINE_OPTIONS,
    )


def suspending_engine(url: PostgreSQLUrl, *, pool_size: int, timeout: float) -> Engine:
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
        **ENGINE_OPTIONS,
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
        async def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:  # noqa: ASYNC109
            return await super().wait(gen, interval, statement_timeout if timeout is None else timeout)

    return TimedAsyncConnection


def _driver(name: str, purpose: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as exc:
        raise MissingDependencyError(purpose, name, "postgres") from exc
