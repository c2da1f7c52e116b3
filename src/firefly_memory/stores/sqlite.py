"""``SQLiteStore``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine
from sqlalchemy.pool import SingletonThreadPool

from firefly_memory.databases.sql.external_engine import ExternalDatabase
from firefly_memory.databases.sql.sqlite.database import IN_MEMORY, SQLiteDatabase
from firefly_memory.databases.sql.sqlite.dialect import SQLiteDialect
from firefly_memory.errors import ConfigurationError
from firefly_memory.likely_names import answers_guesses
from firefly_memory.protocols import Capability
from firefly_memory.reprs import even_half_built, shown
from firefly_memory.stores.sql import SQLStore
from firefly_memory.validation import ONLY_MINE, exactly_one, file_modes

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


_URL = re.compile("(?i:sqlite):|[A-Za-z][A-Za-z0-9+.-]+://")


class SQLiteStore(SQLStore):
    """Entries in an SQLite file, which is made with its directories when it is first used.

    A relative path counts from where the process is when the store is made. ``timeout`` is how long a call waits for
    other writers and for a free connection, in seconds. ``synchronous`` is SQLite's own: with ``"FULL"`` what was
    acknowledged survives a power failure, with ``"NORMAL"`` it survives a crash of the process only, and saving is
    faster. ``file_mode`` and ``directory_mode`` are the rights on what is made, whatever the umask, and on what SQLite
    puts beside the file; what is there keeps its own.
    ``migrate=False`` checks the schema instead of bringing it up to date, and makes no file.
    ``engine`` is an ``Engine`` or ``AsyncEngine`` of your own, in place of ``path``: it stays yours.
    """

    _dialect = SQLiteDialect
    _schema_name = None

    @answers_guesses
    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        timeout: float = 30.0,
        synchronous: str = "FULL",
        pool_size: int = 8,
        migrate: bool = True,
        file_mode: int = ONLY_MINE.file,
        directory_mode: int = ONLY_MINE.directory,
        engine: Engine | AsyncEngine | None = None,
    ) -> None:
        exactly_one("SQLiteStore", path=path, engine=engine)
        if engine is not None:
            _check_pool(engine)
            database = ExternalDatabase(engine, self._dialect, None, timeout=timeout, migrate=migrate)
            self._shown = f"engine={type(engine).__name__}({database.db_name.name})"
            super().__init__(database)
            return
        assert path is not None
        name = os.fspath(path)
        if not isinstance(name, str) or not name or "\x00" in name:
            raise ConfigurationError(f"SQLiteStore needs the path of a file, not {path!r}")
        if _URL.match(name):  # which may hold a password
            raise ConfigurationError("SQLiteStore takes a path; for a URL use firefly_memory.connect()")
        if not isinstance(synchronous, str) or synchronous.upper() not in {"FULL", "NORMAL", "EXTRA"}:
            raise ConfigurationError(f"synchronous must be 'FULL', 'NORMAL' or 'EXTRA', not {shown(synchronous)}")
        if name == IN_MEMORY:
            self._capabilities = self._capabilities - {Capability.DURABLE, Capability.SHARED}
        else:
            self.path: Path | None = Path(name).absolute()
        self._shown = repr(name)
        super().__init__(
            SQLiteDatabase(
                name,
                timeout=timeout,
                synchronous=synchronous.upper(),
                pool_size=pool_size,
                migrate=migrate,
                modes=file_modes(file_mode, directory_mode),
            )
        )

    @even_half_built
    def __repr__(self) -> str:
        return f"SQLiteStore({self._shown})"


def _check_pool(engine: Engine | AsyncEngine) -> None:
    if isinstance(engine, Engine) and isinstance(engine.pool, SingletonThreadPool):
        raise ConfigurationError(
            "the engine's SingletonThreadPool gives each thread a connection of its own, and in memory a database of "
            "its own; use SQLiteStore(':memory:'), or create the engine with poolclass=StaticPool and "
            "connect_args={'check_same_thread': False}"
        )
