"""One migrator at a time: PostgreSQL's advisory locks, and who holds them.

Any role that may log in can compute the keys and hold the locks. That cannot be prevented, so it is said who does.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, cast, column, func, literal, select, table

from firefly_memory.concurrency.cancellation import stop_if_given_up
from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.search_path import (
    ONLY_PG_CATALOG,
    pinned_for_reading,
    rolled_back_on_error,
    session_settings,
)
from firefly_memory.errors import StoreTimeoutError

_logger = logging.getLogger("firefly_memory.stores.sql.migration_lock")  # its documented name

_FIRST_WORD, _NEXT_WORDS = 1.0, 10.0
"""Seconds of waiting until the log says so, and between that and each time after."""

_locks = table(
    "pg_locks",
    *map(column, ("pid", "locktype", "database", "classid", "objid", "objsubid", "granted")),
    schema="pg_catalog",
)
_sessions = table(
    "pg_stat_activity",
    *map(column, ("pid", "usename", "application_name", "xact_start", "backend_start")),
    schema="pg_catalog",
)
_databases = table("pg_database", column("oid"), column("datname"), schema="pg_catalog")


def lock_key(schema_name: str | None) -> int:
    digest = hashlib.sha256(f"firefly-memory {schema_name}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def begin_alone(connection: Connection, db_name: DatabaseName, timeout: float) -> None:
    """Begin a transaction that has the migration lock, which ends with it: a lock of the session would stay behind on
    a connection that a pooler hands to others."""
    key = lock_key(db_name.schema_name)

    def has_begun() -> bool:
        # At this level the statements after it see what the last holder of the lock has committed.
        connection.exec_driver_sql("BEGIN ISOLATION LEVEL READ COMMITTED")
        with rolled_back_on_error(connection):
            connection.exec_driver_sql(ONLY_PG_CATALOG)
            if _is_free(connection, func.pg_catalog.pg_try_advisory_xact_lock(key)):
                return True
        connection.exec_driver_sql("ROLLBACK")
        return False

    _ask_again(connection, key, has_begun, timeout)


@contextmanager
def online_lock(connection: Connection, db_name: DatabaseName, timeout: float) -> Iterator[None]:
    """For a revision that is no transaction and may take hours: a lock of the session, and no time-out."""
    if connection.dialect.name != "postgresql":
        yield
        return
    key = lock_key(f"{db_name.schema_name} online")
    _ask_again(connection, key, lambda: _is_free(connection, func.pg_catalog.pg_try_advisory_lock(key)), timeout)
    try:
        with session_settings(connection, statement_timeout="0", search_path="pg_catalog"):
            yield
        connection.execute(select(func.pg_catalog.pg_advisory_unlock(key)))
    except BaseException:
        connection.invalidate()  # and with it the lock
        raise


def _is_free(connection: Connection, lock: Any) -> bool:
    return bool(connection.execute(select(lock)).scalar_one())


def _ask_again(connection: Connection, key: int, succeeded: Callable[[], bool], timeout: float) -> None:
    # Waiting inside the server would deadlock with CREATE INDEX CONCURRENTLY.
    began = time.monotonic()
    pause, next_word = 0.01, _FIRST_WORD
    while not succeeded():
        waited = time.monotonic() - began
        left = timeout - waited
        if left <= 0:
            raise StoreTimeoutError("initialize", _is_held(connection, key, timeout), retryable=True)
        if waited >= next_word:
            next_word = waited + _NEXT_WORDS
            holders = _holders(connection, key)
            _logger.warning("the migration lock is held by %s; waiting for %g seconds at most", holders, timeout)
        stop_if_given_up()
        # On the server, so that an event loop goes on meanwhile.
        connection.execute(select(func.pg_catalog.pg_sleep(min(pause, left))))
        pause = min(pause * 2, 0.25)


def _is_held(connection: Connection, key: int, timeout: float) -> str:
    return (
        "somebody else, in another process or another task of this one, is still migrating the schema, after "
        f"{timeout:g} seconds of waiting; the migration lock is held by {_holders(connection, key)}; if that is no "
        "migration, end it with pg_terminate_backend(process)"
    )


def _holders(connection: Connection, key: int) -> str:
    """Who holds a lock now, as far as the role may see."""
    unsigned = key % 2**64
    lock, session, database = _locks.c, _sessions.c, _databases.c
    this = (
        lock.locktype == "advisory",
        cast(lock.classid, BigInteger) == literal(unsigned >> 32, BigInteger),
        cast(lock.objid, BigInteger) == literal(unsigned % 2**32, BigInteger),
        lock.objsubid == 1,
        lock.granted,
        database.datname == func.current_database(),
    )
    since = func.coalesce(session.xact_start, session.backend_start)
    statement = (
        select(lock.pid, session.usename, session.application_name, since)
        .select_from(
            _locks.join(_databases, database.oid == lock.database).outerjoin(_sessions, session.pid == lock.pid)
        )
        .where(*this)
    )
    with pinned_for_reading(connection):
        rows = connection.execute(statement).all()
    return "; ".join(_described(*row) for row in rows) or "nobody any more"


def _described(pid: int, role: str | None, application: str | None, since: datetime | None) -> str:
    parts = [f"process {pid} of the server"]
    if role:
        parts.append(f"role {role!r}")
    if application:
        parts.append(f"application {application!r}")
    parts.append("since a time that this role may not see" if since is None else f"since {since:%Y-%m-%d %H:%M:%S%z}")
    return ", ".join(parts)
