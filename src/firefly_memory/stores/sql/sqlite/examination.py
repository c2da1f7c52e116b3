"""What ``firefly-memory doctor`` looks at where a store is an SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, column, create_engine, func, select
from sqlalchemy.pool import NullPool

from firefly_memory.errors import CorruptDataError, DatabaseConnectionError
from firefly_memory.stores.file_examination import by_others, file_system, free_space
from firefly_memory.stores.findings import Finding, ok, problem, warning
from firefly_memory.stores.sql import migrate
from firefly_memory.stores.sql.errors import Place
from firefly_memory.stores.sql.examination import of_schema
from firefly_memory.stores.sql.sqlite.database import IN_MEMORY, sqlite_path

_NEEDED = (3, 35)
"""The first SQLite that has RETURNING."""

_FORMAT = slice(18, 20)
_WAL = b"\x02\x02"


def examine(url: str, *, timeout: float) -> Iterator[Finding]:
    """The library, the file, and the disk it is on."""
    name = sqlite_path(url)
    if name == IN_MEMORY:
        yield warning("file", "none: the database is in memory and ends with the process", "name a file to keep it")
        return
    path = Path(name).absolute()
    if not path.is_file():
        raise DatabaseConnectionError("doctor", f"there is no file {path}")
    if sqlite3.sqlite_version_info < _NEEDED:
        yield problem("SQLite", sqlite3.sqlite_version, "use a Python with SQLite 3.35 or newer")
    else:
        yield ok("SQLite", sqlite3.sqlite_version)
    yield from _writable(path)
    yield from by_others(path)
    yield from file_system(path)
    yield from free_space(path.parent, path.stat().st_size // 10)
    if not os.access(path, os.R_OK):
        return
    uses_wal = _uses_wal(path)
    if uses_wal:
        yield ok("journal", "WAL: readers and the writer go on together")
    else:
        yield warning("journal", "WAL is off", "open the file with a store once, which turns it on")
    try:
        yield from _contents(path, uses_wal, timeout)
    except CorruptDataError as error:
        yield problem("integrity", error.problem, "put a copy of it in its place, or save what .recover finds in it")


def _writable(path: Path) -> Iterator[Finding]:
    lacking = [str(each) for each in (path, path.parent) if not os.access(each, os.W_OK)]
    if lacking:
        do = "give this user the right to write the file, and its directory, where SQLite puts files beside it"
        yield problem("file", f"not writable: {', '.join(lacking)}", do)
    else:
        yield ok("file", f"{path} is writable")


def _uses_wal(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(_FORMAT.stop)[_FORMAT] == _WAL


def _contents(path: Path, uses_wal: bool, timeout: float) -> Iterator[Finding]:
    # Opening a file that uses WAL makes two others beside it, unless they are there already: then somebody may be
    # writing. If not, nobody is, and SQLite is told so.
    alone = uses_wal and not path.with_name(f"{path.name}-wal").exists()
    uri = f"{path.as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
    engine = create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(uri, uri=True, timeout=timeout), poolclass=NullPool
    )
    place = Place(str(path))
    with migrate.connected(engine, place, "doctor") as connection:
        yield _integrity(connection)
        yield from of_schema(connection, place)


def _integrity(connection: Connection) -> Finding:
    check = func.pragma_quick_check().table_valued(column("quick_check"))
    answers = connection.execute(select(check.c.quick_check)).scalars().all()
    if answers == ["ok"]:
        return ok("integrity", "quick_check finds nothing wrong")
    return problem("integrity", "; ".join(answers[:3]), "put a copy of it in its place, or save what .recover finds")
