"""A PostgreSQL database for commands: one connection at a time, which is closed at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine

from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.postgresql.engines import OF_A_MIGRATION, blocking_engine
from firefly_memory.databases.sql.postgresql.url import postgresql_url
from firefly_memory.databases.sql.schema import migrate


@contextmanager
def one_connection(
    url: str, schema_name: str, timeout: float, *, reading: bool = False
) -> Iterator[tuple[Engine, DatabaseName]]:
    """With ``reading``, statements have the time-out of a store; those of a migration may take as long as they need."""
    parsed = postgresql_url(url)
    engine = blocking_engine(
        parsed, pool_size=1, timeout=timeout, statement_timeout=None if reading else OF_A_MIGRATION
    )
    try:
        yield engine, DatabaseName(str(parsed), migrate.checked_schema_name(schema_name))
    finally:
        engine.dispose()
