"""An SQLite file of a predecessor, which is only read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import NullPool

from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.sqlite.database import sqlite_path
from firefly_memory.databases.sql.sqlite.read_only import is_at_rest, read_only
from firefly_memory.errors import DatabaseConnectionError


@contextmanager
def legacy_file(
    url: str,
    _: str,  # the name of a schema, which SQLite does not have
    timeout: float,
) -> Iterator[tuple[Engine, DatabaseName]]:
    """An engine for the file, which has to be there."""
    path = Path(sqlite_path(url)).absolute()
    if not path.is_file():
        raise DatabaseConnectionError("import-legacy", f"there is no file {path}")
    at_rest = is_at_rest(path)

    def connect() -> sqlite3.Connection:
        connection = read_only(path, at_rest=at_rest, timeout=timeout)
        # What is not UTF-8 becomes surrogates instead of an error that would end the reading.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    try:
        yield engine, DatabaseName(f"SQLite database {path}")
    finally:
        engine.dispose()
