"""An SQLite file for commands: one connection at a time, which is closed at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.sqlite.database import IN_MEMORY, sqlite_engine, sqlite_path
from firefly_memory.databases.sql.sqlite.read_only import read_only_engine
from firefly_memory.validation import ONLY_MINE


@contextmanager
def one_connection(
    url: str,
    _: str,  # the name of a schema, which SQLite does not have
    timeout: float,
    *,
    reading: bool = False,
    file_mode: int = ONLY_MINE.file,
) -> Iterator[tuple[Engine, DatabaseName]]:
    """With ``reading`` the file is only read; ``file_mode`` is for a new one."""
    path = sqlite_path(url)
    if reading and path != IN_MEMORY:
        with read_only_engine(Path(path), timeout=timeout) as engine:
            yield engine, DatabaseName(path)
        return
    engine = sqlite_engine(path, pool_size=1, timeout=timeout, synchronous="FULL", file_mode=file_mode)
    try:
        yield engine, DatabaseName(path)
    finally:
        engine.dispose()
