"""What ``firefly-memory doctor`` looks at where a store is an SQLite file."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, column, func, select

from firefly_memory.databases.diagnostics import Finding, ok, problem, warning
from firefly_memory.databases.files.diagnosis import by_others, file_system, free_space
from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.schema import migrate
from firefly_memory.databases.sql.schema.diagnosis import of_schema
from firefly_memory.databases.sql.sqlite.database import IN_MEMORY, sqlite_path
from firefly_memory.databases.sql.sqlite.read_only import read_only_engine, uses_wal
from firefly_memory.errors import CorruptDataError

_NEEDED = (3, 35)
"""The first SQLite that has RETURNING."""


def diagnose(url: str, *, timeout: float, **_: Any) -> Iterator[Finding]:
    """The library, the file, and the disk it is on."""
    name = sqlite_path(url)
    if name == IN_MEMORY:
        yield warning("file", "none: the database is in memory and ends with the process", "name a file to keep it")
        return
    path = Path(name).absolute()
    if not path.is_file():
        raise DatabaseName(str(path)).is_missing("doctor")
    if sqlite3.sqlite_version_info < _NEEDED:
        yield problem("SQLite", sqlite3.sqlite_version, "use a Python with SQLite 3.35 or newer")
    else:
        yield ok("SQLite", sqlite3.sqlite_version)
    yield from _writable(path)
    yield from by_others(path.with_name(path.name + end) for end in ("", "-wal", "-shm", "-journal"))
    if path.parent.stat().st_mode & stat.S_IWOTH and not path.parent.stat().st_mode & stat.S_ISVTX:
        found = f"everybody may replace {path}, which is in a directory that everybody may write to"
        yield warning("permissions", found, f"chmod o-w {path.parent}")
    yield from file_system(path)
    yield from free_space(path.parent, path.stat().st_size // 10)
    if not os.access(path, os.R_OK):
        return
    if uses_wal(path):
        yield ok("journal", "WAL: readers and the writer go on together")
    else:
        yield warning("journal", "WAL is off", "open the file with a store once, which turns it on")
    try:
        yield from _contents(path, timeout)
    except CorruptDataError as error:
        yield problem("integrity", error.problem, "put a copy of it in its place, or save what .recover finds in it")


def _writable(path: Path) -> Iterator[Finding]:
    lacking = [str(each) for each in (path, path.parent) if not os.access(each, os.W_OK)]
    if lacking:
        do = "give this user the right to write the file, and its directory, where SQLite puts files beside it"
        yield problem("file", f"not writable: {', '.join(lacking)}", do)
    else:
        yield ok("file", f"{path} is writable")


def _contents(path: Path, timeout: float) -> Iterator[Finding]:
    db_name = DatabaseName(str(path))
    with (
        read_only_engine(path, timeout=timeout, operation="doctor") as engine,
        migrate.connected(engine, db_name, "doctor") as connection,
    ):
        yield _integrity(connection)
        yield from of_schema(connection, db_name)


def _integrity(connection: Connection) -> Finding:
    check = func.pragma_quick_check().table_valued(column("quick_check"))
    answers = connection.execute(select(check.c.quick_check)).scalars().all()
    if answers == ["ok"]:
        return ok("integrity", "quick_check finds nothing wrong")
    return problem("integrity", "; ".join(answers[:3]), "put a copy of it in its place, or save what .recover finds")
