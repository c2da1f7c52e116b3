"""The stores on SQL databases."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import Connection, Engine

from firefly_memory.codec import Form
from firefly_memory.errors import ConfigurationError
from firefly_memory.protocols import Capability, StoreView
from firefly_memory.schema import POSTGRESQL_SCHEMA
from firefly_memory.stores.base import EntryStore
from firefly_memory.stores.sql.backend import SQLBackend
from firefly_memory.stores.sql.borrowed import BorrowedDatabase, BoundDatabase
from firefly_memory.stores.sql.database import PostgreSQLDatabase, SQLiteDatabase
from firefly_memory.stores.sql.dialects import PostgreSQLStatements, SQLiteStatements
from firefly_memory.stores.sql.engines import IN_MEMORY
from firefly_memory.stores.sql.migrate import checked_schema_name
from firefly_memory.stores.sql.runners import Runner
from firefly_memory.stores.sql.urls import postgresql_url
from firefly_memory.stores.view import RecordView

if TYPE_CHECKING:
    from sqlalchemy import URL
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine


class _Database(Protocol):
    @property
    def blocking(self) -> Runner: ...

    @property
    def suspending(self) -> Runner: ...


class SQLStore(EntryStore):
    """Entries in the table ``memory_entries`` of a SQL database."""

    _form: Form
    _dialect_name: str
    _schema_name: str | None
    _capabilities: frozenset[Capability] = frozenset(Capability)

    def __init__(self, database: _Database) -> None:
        self.database = database
        self._blocking = RecordView(SQLBackend(database.blocking, self._form, self._capabilities))
        self._suspending = RecordView(SQLBackend(database.suspending, self._form, self._capabilities))

    @property
    def blocking(self) -> StoreView:
        return self._blocking

    @property
    def suspending(self) -> StoreView:
        return self._suspending

    def bind(self, connection: Connection | AsyncConnection) -> BoundStore:
        """This store inside the transaction of ``connection``: what it does commits or rolls back with the rest.

        An ``AsyncConnection`` has the asynchronous methods only. Nothing is committed, closed or migrated here.
        """
        bound = BoundDatabase(connection, dialect_name=self._dialect_name, schema_name=self._schema_name)
        return BoundStore(self, bound)


class BoundStore(SQLStore):
    """What :meth:`SQLStore.bind` returns."""

    def __init__(self, store: SQLStore, database: BoundDatabase) -> None:
        self._form = store._form  # noqa: SLF001 - a sibling
        self._dialect_name = store._dialect_name  # noqa: SLF001
        self._schema_name = store._schema_name  # noqa: SLF001
        self._capabilities = store._capabilities  # noqa: SLF001
        self._store = store
        super().__init__(database)

    def __repr__(self) -> str:
        return f"<{self._store!r} bound to a connection>"


class SQLiteStore(SQLStore):
    """Entries in an SQLite file, which is created with its directories when it is first used.

    ``timeout`` is how long a writer waits for writers of other processes, in seconds. ``synchronous`` is SQLite's
    own: with ``"FULL"`` what was acknowledged survives a power failure, with ``"NORMAL"`` it survives a crash of the
    process only, and saving is faster. ``migrate=False`` checks the schema instead of bringing it up to date.
    ``engine`` is an ``Engine`` or ``AsyncEngine`` of your own, in place of ``path``: it stays yours.
    """

    _form = SQLiteStatements.form
    _dialect_name = "sqlite"
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
        _exactly_one("SQLiteStore", path=path, engine=engine)
        if engine is not None:
            self._shown = f"engine={engine!r}"
            super().__init__(_borrowed(engine, "sqlite", None, timeout, migrate))
            return
        assert path is not None
        name = os.fspath(path)
        if not isinstance(name, str) or not name or "\x00" in name:
            raise ConfigurationError(f"SQLiteStore needs the path of a file, not {path!r}")
        if name.startswith("sqlite:"):
            raise ConfigurationError(f"SQLiteStore takes a path; for the URL {name!r} use firefly_memory.connect()")
        if synchronous.upper() not in {"FULL", "NORMAL", "EXTRA"}:
            raise ConfigurationError(f"synchronous must be 'FULL', 'NORMAL' or 'EXTRA', not {synchronous!r}")
        if name == IN_MEMORY:
            self._capabilities = self._capabilities - {Capability.DURABLE, Capability.SHARED}
        self._shown = repr(name)
        super().__init__(
            SQLiteDatabase(name, timeout=timeout, synchronous=synchronous.upper(), pool_size=pool_size, migrate=migrate)
        )

    def __repr__(self) -> str:
        return f"SQLiteStore({self._shown})"


class PostgreSQLStore(SQLStore):
    """Entries in a PostgreSQL database, in a schema of their own.

    ``url`` may have any of the usual schemes, several hosts, unix sockets and libpq's parameters. Asynchronous methods
    use asyncpg, blocking ones psycopg, each with a pool of up to ``pool_size`` connections, of which ``initialize()``
    opens ``pool_min_size``. ``timeout`` bounds connecting, waiting for a free connection and every statement, in
    seconds. ``migrate=False`` checks the schema instead of bringing it up to date, for roles without DDL rights.
    ``engine`` is an ``Engine`` or ``AsyncEngine`` of your own, in place of ``url``: it stays yours.
    """

    _form = PostgreSQLStatements.form
    _dialect_name = "postgresql"

    def __init__(
        self,
        url: str | URL | None = None,
        *,
        pool_size: int = 10,
        pool_min_size: int = 2,
        timeout: float = 30.0,
        schema_name: str = POSTGRESQL_SCHEMA,
        migrate: bool = True,
        engine: Engine | AsyncEngine | None = None,
    ) -> None:
        _exactly_one("PostgreSQLStore", url=url, engine=engine)
        self._schema_name = checked_schema_name(schema_name)
        if engine is not None:
            self._shown = f"engine={engine!r}"
            super().__init__(_borrowed(engine, "postgresql", schema_name, timeout, migrate))
            return
        assert url is not None
        parsed = postgresql_url(url)
        self._shown = repr(str(parsed))
        super().__init__(
            PostgreSQLDatabase(
                parsed,
                pool_size=pool_size,
                pool_min_size=pool_min_size,
                timeout=timeout,
                schema_name=schema_name,
                migrate=migrate,
            )
        )

    def __repr__(self) -> str:
        return f"PostgreSQLStore({self._shown}, schema_name={self._schema_name!r})"


def _borrowed(
    engine: Engine | AsyncEngine, dialect_name: str, schema_name: str | None, timeout: float, migrate: bool
) -> BorrowedDatabase:
    if not isinstance(engine, Engine) and not hasattr(engine, "sync_engine"):
        raise ConfigurationError(f"engine must be a SQLAlchemy Engine or AsyncEngine, not {type(engine).__name__}")
    return BorrowedDatabase(
        engine, dialect_name=dialect_name, schema_name=schema_name, timeout=timeout, migrate=migrate
    )


def _exactly_one(store: str, **given: Any) -> None:
    (first, second) = given
    if (given[first] is None) == (given[second] is None):
        raise ConfigurationError(f"{store} needs either {first} or {second}")
