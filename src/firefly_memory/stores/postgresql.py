"""``PostgreSQLStore``."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from sqlalchemy import Engine

from firefly_memory.databases.sql.external_engine import ExternalDatabase
from firefly_memory.databases.sql.postgresql.database import PostgreSQLDatabase
from firefly_memory.databases.sql.postgresql.dialect import PostgreSQLDialect
from firefly_memory.databases.sql.postgresql.url import postgresql_url
from firefly_memory.databases.sql.schema.migrate import checked_schema_name
from firefly_memory.databases.sql.schema.names import POSTGRESQL_SCHEMA
from firefly_memory.errors import ConfigurationError
from firefly_memory.likely_names import answers_guesses
from firefly_memory.reprs import even_half_built, shown
from firefly_memory.stores.sql import SQLStore
from firefly_memory.validation import Pooler, exactly_one, require_extra

if TYPE_CHECKING:
    from sqlalchemy import URL
    from sqlalchemy.ext.asyncio import AsyncEngine


_DRIVERS = ("asyncpg", "psycopg")


class PostgreSQLStore(SQLStore):
    """Entries in a PostgreSQL database, in a schema of their own.

    ``url`` may have any of the usual schemes, several hosts, unix sockets and libpq's parameters. Asynchronous methods
    use asyncpg, blocking ones psycopg, each with a pool of up to ``pool_size`` connections, of which ``initialize()``
    opens ``pool_min_size``. ``timeout`` bounds connecting, waiting for a free connection and every statement, in
    seconds. ``migrate=False`` checks the schema instead of bringing it up to date, for roles without DDL rights.
    ``pooler`` says how a pooler between the store and the server shares connections: per ``"transaction"`` or
    ``"session"``. ``engine`` is an ``Engine`` or ``AsyncEngine`` of your own, in place of ``url``: it stays yours.
    """

    _dialect = PostgreSQLDialect

    @answers_guesses
    def __init__(
        self,
        url: str | URL | None = None,
        *,
        pool_size: int = 10,
        pool_min_size: int = 2,
        timeout: float = 30.0,
        schema_name: str = POSTGRESQL_SCHEMA,
        migrate: bool = True,
        pooler: str | None = None,
        engine: Engine | AsyncEngine | None = None,
    ) -> None:
        exactly_one("PostgreSQLStore", url=url, engine=engine)
        self._schema_name = checked_schema_name(schema_name)
        if pooler not in (None, *get_args(Pooler)):
            raise ConfigurationError(f"pooler must be 'transaction', 'session' or None, not {shown(pooler)}")
        if engine is not None and pooler is not None:
            raise ConfigurationError("pooler goes with url; an engine of yours is told by its own connect_args")
        if engine is not None:
            database = ExternalDatabase(engine, self._dialect, schema_name, timeout=timeout, migrate=migrate)
            self._shown = f"engine={type(engine).__name__}({database.db_name.name})"
            super().__init__(database)
            return
        assert url is not None
        require_extra("PostgreSQLStore", "asyncpg", "postgres", "psycopg")  # each is enough for its kind of methods
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
                prepared=pooler != "transaction",
            )
        )

    @even_half_built
    def __repr__(self) -> str:
        return f"PostgreSQLStore({self._shown}, schema_name={self._schema_name!r})"
