"""Engines for PostgreSQL, one per driver and mode."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from secrets import randbits, token_hex
from time import monotonic, sleep
from types import ModuleType
from typing import Any, cast
from weakref import WeakSet

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.pool import QueuePool

from firefly_memory.concurrency.growing_pauses import growing_pauses
from firefly_memory.concurrency.sync_bridge import result_of, run_without_loop
from firefly_memory.databases.sql.database import ENGINE_OPTIONS
from firefly_memory.databases.sql.errors import is_full
from firefly_memory.databases.sql.postgresql.client_timeout import with_client_timeout
from firefly_memory.databases.sql.postgresql.connecting_loop import ConnectingLoop
from firefly_memory.databases.sql.postgresql.exact import make_exact
from firefly_memory.databases.sql.postgresql.url import PostgreSQLUrl
from firefly_memory.validation import ImportingExtra

APPLICATION_NAME = "firefly-memory"

_SERVER_FIRST = 0.5
"""Seconds that a driver waits longer than the server: after the server's own time-out a connection is still good."""

OF_A_MIGRATION = 86_400.0
"""Seconds that a statement of a migration may take: a long table takes its time."""

_USES_BEFORE_PREPARING = 5
"""psycopg's default."""

_OF_PSYCOPG: dict[str, Any] = {
    "paramstyle": "numeric_dollar",  # as the server takes it: see _raw_cursors()
    "use_native_hstore": False,  # saves a query on each first connection
}

_OWN_SETTINGS = "-c extra_float_digits=3 -c search_path=pg_catalog"
"""What no URL can set otherwise. All tables are named with their schema; what else is looked up is PostgreSQL's own."""

_NO_SETTINGS = re.compile("unsupported startup parameter|command-line options")
"""What PgBouncer and Amazon's proxy say to settings that they do not let through."""


def blocking_engine(
    url: PostgreSQLUrl,
    *,
    pool_size: int,
    timeout: float,
    statement_timeout: float | None = None,
    prepared: bool = False,
    settings: str = _OWN_SETTINGS,
) -> Engine:
    """psycopg, whatever driver the URL names: asyncpg cannot block.

    Statements that are ``prepared`` once for each connection are fast, but get lost where a pooler hands connections
    of the server from one transaction to the next. One may take ``statement_timeout`` seconds; if that is ``None``,
    ``timeout``.
    Without ``settings``, a connection has the search path that the role's other software has.
    """
    statement_timeout = timeout if statement_timeout is None else statement_timeout
    psycopg = _driver("psycopg", "calling a blocking method of a PostgreSQL store")
    open_one = _psycopg_connect(psycopg, psycopg.Connection, url, timeout, statement_timeout, prepared)
    connect = _when_there_is_room(
        _with_settings(open_one, url, statement_timeout, settings), timeout, sleep, lambda: engine
    )
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: run_without_loop(connect()),
        pool_size=pool_size,
        pool_timeout=timeout,
        **_OF_PSYCOPG,
        **ENGINE_OPTIONS,
    )
    make_exact(engine.dialect)
    return engine


def suspending_engine(
    url: PostgreSQLUrl,
    *,
    pool_size: int,
    timeout: float,
    statement_timeout: float | None = None,
    prepared: bool = False,
) -> Engine:
    """An engine for use inside ``greenlet_spawn``: asyncpg, or psycopg where the URL asks for what only it can do."""
    statement_timeout = timeout if statement_timeout is None else statement_timeout
    if url.driver == "psycopg" or (url.driver is None and url.only_libpq_understands):
        psycopg = _driver("psycopg", "this PostgreSQL URL")
        open_one = _psycopg_connect(psycopg, psycopg.AsyncConnection, url, timeout, statement_timeout, prepared)
        connect = _with_settings(open_one, url, statement_timeout)
        return _suspending("psycopg_async", connect, {}, pool_size, timeout, **_OF_PSYCOPG)
    asyncpg = _driver("asyncpg", "calling an asynchronous method of a PostgreSQL store")
    arguments = url.for_asyncpg()
    name = {"application_name": url.parameters.get("application_name", APPLICATION_NAME)}
    unprepared = {} if prepared else {"statement_cache_size": 0}  # then they have no name and last for one use

    def connect_asyncpg(**options: str) -> Any:
        return asyncpg.connect(
            **arguments,
            loop=ConnectingLoop(asyncio.get_running_loop()),
            timeout=url.connect_timeout or timeout,
            command_timeout=statement_timeout + _SERVER_FIRST,
            server_settings=name | options,
            **unprepared,
        )

    adapter = {"prepared_statement_name_func": _new_name} if prepared else {"prepared_statement_cache_size": 0}
    connect = _with_settings(connect_asyncpg, url, statement_timeout)
    return _suspending("asyncpg", connect, adapter, pool_size, timeout)


def _new_name() -> str:
    """For a prepared statement: one that nobody else has. Where a pooler leads to somebody else's connection, it is an
    error then, and never somebody else's statement."""
    return f"firefly_{token_hex(16)}"


def _with_settings(
    connect: Callable[..., Any], url: PostgreSQLUrl, statement_timeout: float, settings: str = _OWN_SETTINGS
) -> Callable[[], Any]:
    """A coroutine function that connects, with the settings that this library wants of the server.

    A statement ends there after ``statement_timeout`` even if nobody is left to call it off, and numbers come exactly.
    The settings come along with the connection: sent after it, they would stay with a connection that PgBouncer shares
    among its clients. A pooler that refuses them is asked without.
    """
    asked = {"options": url.options} if url.options else {}
    milliseconds = min(max(1, round(statement_timeout * 1000)), 2**31 - 1)
    wanted = {"options": f"-c statement_timeout={milliseconds} {url.options} {settings}"}

    async def connected() -> Any:
        nonlocal wanted
        sent = wanted  # others may be told meanwhile that it is refused
        try:
            return await result_of(connect(**sent))
        except UnicodeError as exc:  # Python refuses to look up a name such as a..b
            raise OSError(f"the URL names a host that cannot exist: {exc}") from exc
        except Exception as exc:
            if sent is asked or not _NO_SETTINGS.search(str(exc)):
                raise
        wanted = asked
        return await result_of(connect(**asked))

    return connected


def _when_there_is_room(
    connect: Callable[[], Awaitable[Any]], timeout: float, pause: Callable[[float], Any], engine: Callable[[], Engine]
) -> Callable[[], Any]:
    """``connect``, tried again for ``timeout`` seconds while all slots of the server are taken: many processes that
    start at once take turns. With other connections in the pool of ``engine`` it is tried once: one of these may become
    free before the server has room."""

    async def connected() -> Any:
        deadline, pauses = monotonic() + timeout, growing_pauses()
        while True:
            try:
                return await connect()
            except Exception as exc:
                seconds = next(pauses)
                if not is_full(exc) or not _is_the_only_one(engine()) or monotonic() + seconds > deadline:
                    raise
            await result_of(pause(seconds))

    return connected


def _is_the_only_one(engine: Engine) -> bool:
    """Whether the pool has no connection but the one that is being opened."""
    pool = cast("QueuePool", engine.pool)
    return pool.checkedout() + pool.checkedin() <= 1


def _suspending(
    driver: str, connect: Callable[[], Any], adapter: dict[str, Any], pool_size: int, timeout: float, **options: Any
) -> Engine:
    # What create_async_engine() does, without importing SQLAlchemy's ORM as its package would.
    connect_in_turn = _when_there_is_room(connect, timeout, asyncio.sleep, lambda: engine)

    def creator() -> Any:
        return engine.dialect.loaded_dbapi.connect(async_creator_fn=connect_in_turn, **adapter)

    engine = create_engine(
        f"postgresql+{driver}://",
        creator=creator,
        pool_size=pool_size,
        pool_timeout=timeout,
        **options,
        **ENGINE_OPTIONS,
    )
    make_exact(engine.dialect)
    return engine


def connections_of(engine: Engine) -> WeakSet[Any]:
    """The driver's connections that an engine for event loops opens from now on."""
    opened: WeakSet[Any] = WeakSet()

    def add(connection: Any, _: object) -> None:
        opened.add(connection.driver_connection)

    event.listen(engine, "connect", add)
    return opened


def end_without_loop(connection: Any) -> None:
    """Close one of them when its event loop does not run any more."""
    if type(connection).__module__.startswith("asyncpg."):
        connection.terminate()
    else:
        connection.pgconn.finish()


def _psycopg_connect(
    psycopg: ModuleType, kind: Any, url: PostgreSQLUrl, timeout: float, statement_timeout: float, prepared: bool
) -> Callable[..., Any]:
    quiet_line = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
    defaults = {"connect_timeout": str(max(2, round(timeout))), "application_name": APPLICATION_NAME, **quiet_line}
    connection_class = with_client_timeout(psycopg, kind, statement_timeout + _SERVER_FIRST)
    connect = partial(connection_class.connect, **defaults | url.for_psycopg())
    cursors = _raw_cursors(psycopg, kind)

    async def connected(**options: str) -> Any:
        connection = await result_of(connect(**options))
        connection.cursor_factory, connection.server_cursor_factory = cursors
        connection.prepare_threshold = _USES_BEFORE_PREPARING if prepared else None
        connection._prepared._prepared_idx = randbits(63)  # noqa: SLF001 - the names that it counts up: see _new_name()
        return connection

    return connected


def _raw_cursors(psycopg: ModuleType, kind: Any) -> tuple[Any, Any]:
    """Cursors of psycopg that send a statement as it is. Others look for placeholders in it, in each call if the
    statement is long."""
    if kind is psycopg.Connection:
        return psycopg.RawCursor, psycopg.RawServerCursor
    return psycopg.AsyncRawCursor, psycopg.AsyncRawServerCursor


def _driver(name: str, purpose: str) -> ModuleType:
    with ImportingExtra(purpose, name, "postgres"):
        return import_module(name)
