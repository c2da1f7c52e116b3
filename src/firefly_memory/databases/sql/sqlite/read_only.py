"""An SQLite file that is only read: neither the file nor its directory is changed.

SQLite puts two files beside one in WAL mode, also for who only reads, unless they are there already: then somebody may
have it open. If not, the file is at rest, and SQLite is told so; whether that was true is seen at the end.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import QueuePool

from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.errors import DatabaseStoreError, FireflyMemoryError

_FORMAT = slice(18, 20)
_WAL = b"\x02\x02"


@contextmanager
def read_only_engine(path: Path, *, timeout: float, operation: str = "read") -> Iterator[Engine]:
    """Connections to a file that is there. ``SchemaMismatchError`` if it is not, for then nothing is."""
    path = path.absolute()
    if not path.is_file():
        raise DatabaseName(str(path)).is_missing(operation)
    at_rest, before = is_at_rest(path), _version(path)
    engine = create_engine(
        f"sqlite:///{path}",
        creator=lambda: read_only(path, at_rest=at_rest, timeout=timeout),
        poolclass=QueuePool,
        pool_timeout=timeout,
        isolation_level="AUTOCOMMIT",
    )
    try:
        yield engine
    except FireflyMemoryError as error:  # such as damage that there is none of
        _check_that_nobody_wrote(at_rest, path, before, operation, error)
        raise
    finally:
        engine.dispose()
    _check_that_nobody_wrote(at_rest, path, before, operation)


def _check_that_nobody_wrote(
    at_rest: bool, path: Path, before: object, operation: str, cause: Exception | None = None
) -> None:
    if at_rest and _version(path) != before:
        reason = f"somebody wrote to {path} meanwhile, so that what was read may not be right; try again"
        raise DatabaseStoreError(operation, reason, retryable=True) from cause


def read_only(path: Path, *, at_rest: bool, timeout: float) -> sqlite3.Connection:
    uri = f"{path.as_uri()}?mode=ro{'&immutable=1' if at_rest else ''}"
    return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False)


def uses_wal(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(_FORMAT.stop)[_FORMAT] == _WAL


def is_at_rest(path: Path) -> bool:
    """Whether the file is in WAL mode and nobody has it open."""
    return uses_wal(path) and not path.with_name(f"{path.name}-wal").exists()


def _version(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
