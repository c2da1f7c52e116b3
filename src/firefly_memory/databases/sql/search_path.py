"""Where PostgreSQL looks for functions, operators and types: nowhere but in ``pg_catalog``.

Whoever may create in a schema of the search path can plant functions and operators that fit the types of a statement
better than PostgreSQL's own do; they would run with the rights of whoever sends it. The statements of the stores leave
no room for that (:mod:`~firefly_memory.databases.sql.postgresql.exact`). Those of SQLAlchemy, of Alembic and of the
revisions do, and run in here. The settings end with the transaction: a connection may be the caller's, or a pooler's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, false, func, select

ONLY_PG_CATALOG = "SET LOCAL search_path = pg_catalog"
"""For the rest of a transaction. A command, so that nothing is looked up for it."""

_KEPT = "firefly_memory.search_path"
"""A setting of our own, which keeps the caller's."""


@contextmanager
def pinned_for_reading(connection: Connection) -> Iterator[None]:
    """A transaction on an autocommit ``connection`` that only reads."""
    if connection.dialect.name != "postgresql":
        yield
        return
    connection.exec_driver_sql("BEGIN READ ONLY")
    with rolled_back_on_error(connection):
        connection.exec_driver_sql(ONLY_PG_CATALOG)
        yield
        connection.exec_driver_sql("COMMIT")


@contextmanager
def rolled_back_on_error(connection: Connection) -> Iterator[None]:
    """Around a transaction on an autocommit ``connection``."""
    try:
        yield
    except BaseException:
        try:
            connection.exec_driver_sql("ROLLBACK")
        except Exception:  # noqa: BLE001 - the first error is the one to report
            connection.invalidate()
        raise


@contextmanager
def session_settings(connection: Connection, **settings: str) -> Iterator[None]:
    """Settings for a block that cannot be a transaction. After an error they stay: the connection has to go."""
    usual = connection.execute(select(*[func.pg_catalog.current_setting(name) for name in settings])).one()
    _set_for_session(connection, settings)
    yield
    _set_for_session(connection, dict(zip(settings, usual, strict=True)))


def _set_for_session(connection: Connection, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        connection.execute(select(func.pg_catalog.set_config(name, value, false())))


def pinned_in_between() -> tuple[list[str], list[str]]:
    """Statements for before and after those of a transaction that is somebody else's and goes on afterwards."""
    keep = f"SELECT pg_catalog.set_config('{_KEPT}', pg_catalog.current_setting('search_path'), true)"
    # Where each statement is a transaction, nothing was kept, and nothing has to be restored.
    restore = f"SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('{_KEPT}', true), true)"
    return [keep, ONLY_PG_CATALOG], [restore]
