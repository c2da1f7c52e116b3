"""``SQLiteStore``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from firefly_memory.errors import ConfigurationError
from firefly_memory.options import exactly_one
from firefly_memory.protocols import Capability
from firefly_memory.stores.sql.borrowed import BorrowedDatabase
from firefly_memory.stores.sql.sqlite.database import IN_MEMORY, SQLiteDatabase
from firefly_memory.stores.sql.sqlite.statements import SQLiteStatements
from firefly_memory.stores.sql.store import SQLStore

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


class SQLiteStore(SQLStore):
    """Entries in an SQLite file, which is created with its directories when it is first used.

    ``timeout`` is how long a writer waits for writers of other processes, in seconds. ``synchronous`` is SQLite's
    own: with ``"FULL"`` what was acknowledged survives a power failure, with ``"NORMAL"`` it survives a crash of the
    process only, and saving is faster. ``migrate=False`` checks the schema instead of bringing it up to date.
    ``engine`` is an ``Engine`` or ``AsyncEngine`` of your own, in place of ``path``: it stays yours.
    """

    _dialect = SQLiteStatements
    _schema_name = None

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        timeout: float = 30.0,
        synchronous: str = "FULL",
        pool_size: int = 8,
        migrate: bool = True,
        engine: Engine | AsyncEngine | None = None,
    ) -> None:
        exactly_one("SQLiteStore", path=path, engine=engine)
        if engine is not None:
            self._shown = f"engine={engine!r}"
            super().__init__(BorrowedDatabase(engine, self._dialect, None, timeout=timeout, migrate=migrate))
            return
        assert path is not None
        name = os.fspath(path)
        if not isinstance(name, str) or not name or "\x00" in name:
            raise ConfigurationError(f"SQLiteStore needs the path of a file, not {path!r}")
        if name.startswith("sqlite:"):
            raise ConfigurationError(f"SQLiteStore takes a path; for the URL {name!r} use firefly_memory.connect()")
        if not isinstance(synchronous, str) or synchronous.upper() not in {"FULL", "NORMAL", "EXTRA"}:
            raise ConfigurationError(f"synchronous must be 'FULL', 'NORMAL' or 'EXTRA', not {synchronous!r}")
        if name == IN_MEMORY:
            self._capabilities = self._capabilities - {Capability.DURABLE, Capability.SHARED}
        self._shown = repr(name)
        super().__init__(
            SQLiteDatabase(name, timeout=timeout, synchronous=synchronous.upper(), pool_size=pool_size, migrate=migrate)
        )

    def __repr__(self) -> str:
        return f"SQLiteStore({self._shown})"
