"""Migrations: the same revisions from ``initialize()`` and from ``alembic``, one migrator at a time."""

from __future__ import annotations

import hashlib
import io
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Engine, MetaData, Table, Text, exc, func, inspect, select
from sqlalchemy.schema import CreateSchema

from firefly_memory import schema
from firefly_memory.errors import (
    ConfigurationError,
    DatabaseStoreError,
    FireflyMemoryError,
    SchemaMismatchError,
    StoreTimeoutError,
)
from firefly_memory.forks import ForkSafeLock
from firefly_memory.stores.cancellation import stop_if_given_up
from firefly_memory.stores.sql.errors import UNDEFINED_TABLE, Place, is_an_answer, sqlstate, translated

_PATIENCE = 60.0  # seconds that `alembic` waits for a server, or for another migrator

_SCHEMA_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")


def checked_schema_name(name: str) -> str:
    """``name`` if PostgreSQL takes it as an identifier without surprises."""
    if not isinstance(name, str) or not _SCHEMA_NAME.fullmatch(name) or name.lower().startswith("pg_"):
        raise ConfigurationError(
            f"schema_name {name!r} cannot be a schema: use up to 63 letters, digits and underscores, not starting "
            "with a digit or pg_"
        )
    return name


def ensure_schema(engine: Engine, place: Place, *, migrate: bool, timeout: float) -> None:
    """Bring the schema to the revision this version needs, or only check it: one query when it is there already."""
    if not has_schema(engine, place, migrate=migrate):
        upgrade_schema(engine, place, timeout)


def has_schema(engine: Engine, place: Place, *, migrate: bool) -> bool:
    """Whether the schema is at the newest revision. It is an error if nobody may ``migrate`` it there."""
    with _connection(engine, place) as connection:
        found = _current_revision(connection, place)
    if found != schema.HEAD and not migrate:
        raise place.is_not_current("initialize", found)
    return found == schema.HEAD


def upgrade_schema(engine: Engine, place: Place, timeout: float) -> None:
    """Run the revisions that are missing, all of them or none."""
    name = place.schema_name
    with _connection(engine, place) as connection:
        _check_encoding(connection)
        with migrating(connection, name, timeout):
            # Another process may have been faster. To ask a missing table would end PostgreSQL's transaction.
            there = inspect(connection).has_table(schema.VERSION_TABLE, schema=name)
            found = _current_revision(connection, place) if there else None
            if found != schema.HEAD:
                _create_schema(connection, name)
                script = _script(connection.dialect.name, name, found)
                if there and found is None:  # left by a downgrade, empty; the script begins with making it
                    del script[0]
                _run_script(connection, place, script)


@contextmanager
def _connection(engine: Engine, place: Place) -> Iterator[Connection]:
    """One in autocommit mode, which is thrown away unless it is known to be in order at the end."""
    with translated("initialize", place), engine.connect() as connection:
        try:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            yield connection
        except BaseException as error:
            if not is_an_answer(error):
                connection.invalidate()
            raise


def _current_revision(connection: Connection, place: Place) -> str | None:
    """The revision the database says it is at, or ``None`` where there is no schema; ``SchemaMismatchError`` if it is
    ahead of this version."""
    version = Table(schema.VERSION_TABLE, MetaData(), Column("version_num", Text), schema=place.schema_name)
    columns: list[Any] = [version.c.version_num]
    if connection.dialect.name == "postgresql":
        columns.append(_ENCODING)
    try:
        rows = connection.execute(select(*columns)).all()
    except exc.DBAPIError as error:
        if sqlstate(error) in UNDEFINED_TABLE or "no such table" in str(error):
            return None
        raise
    for row in rows:
        _refuse_encoding(*row[1:])
    found = ", ".join(sorted(row[0] for row in rows)) or None
    if found is not None and found not in schema.REVISIONS:
        raise SchemaMismatchError("initialize", found, schema.HEAD, "pip install --upgrade firefly-memory")
    return found


_ENCODING = func.current_setting("server_encoding")


def _check_encoding(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        _refuse_encoding(connection.execute(select(_ENCODING)).scalar_one())


def _refuse_encoding(encoding: str = "UTF8") -> None:
    if encoding != "UTF8":
        reason = f"the database's encoding {encoding} cannot hold every text; use one created with ENCODING 'UTF8'"
        raise DatabaseStoreError("initialize", reason)


@contextmanager
def migrating(connection: Connection, schema_name: str | None, timeout: float) -> Iterator[None]:
    """Hold the migration lock and a transaction on an autocommit ``connection``: all of the block, or nothing."""
    on_postgresql = connection.dialect.name == "postgresql"
    if on_postgresql:
        _acquire(connection, _lock_key(schema_name), timeout)
    try:
        connection.exec_driver_sql("BEGIN" if on_postgresql else "BEGIN IMMEDIATE")
        try:
            yield
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            try:
                connection.exec_driver_sql("ROLLBACK")
            except Exception:  # noqa: BLE001 - the first error is the one to report
                connection.invalidate()
            raise
    finally:
        if on_postgresql and not connection.invalidated:
            connection.execute(select(func.pg_advisory_unlock(_lock_key(schema_name))))


def _acquire(connection: Connection, key: int, timeout: float) -> None:
    # Asked for again and again: waiting inside the server would deadlock with CREATE INDEX CONCURRENTLY.
    deadline = time.monotonic() + timeout
    pause = 0.01
    while not connection.execute(select(func.pg_try_advisory_lock(key))).scalar_one():
        left = deadline - time.monotonic()
        if left <= 0:
            reason = "somebody else, in another process or another task of this one, is still migrating the schema"
            raise StoreTimeoutError("initialize", reason, retryable=True)
        stop_if_given_up()
        # On the server, so that an event loop goes on meanwhile.
        connection.execute(select(func.pg_sleep(min(pause, left))))
        pause = min(pause * 2, 0.25)


def _lock_key(schema_name: str | None) -> int:
    digest = hashlib.sha256(f"firefly-memory {schema_name}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def _run_script(connection: Connection, place: Place, script: list[str]) -> None:
    try:
        for statement in script:
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
    except exc.DBAPIError as error:
        if sqlstate(error) == "42P07" or (place.schema_name is None and "already exists" in str(error)):
            raise _unversioned(place) from error
        raise


_alembic = ForkSafeLock()  # what Alembic works on is global to the process


class _Statements(io.StringIO):
    """Takes the place of the file that Alembic would print a script to."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def write(self, text: str) -> int:
        """One statement, or a comment."""
        statement = text.strip().removesuffix(";")
        if not statement.startswith("--"):
            self.written.append(statement)
        return len(text)


def _script(dialect_name: str, schema_name: str | None, found: str | None) -> list[str]:
    """The statements that lead from revision ``found`` to the newest.

    Alembic writes them, and never sees a connection: its global lock is not held while anybody waits for a database,
    and so nobody can wait for the lock in the thread that has to answer.
    """
    statements = _Statements()
    with _alembic:
        from alembic import command  # slow to load, and not needed while the schema is current
        from alembic.config import Config

        config = Config(output_buffer=statements)
        config.set_main_option("script_location", str(script_location()).replace("%", "%%"))
        config.attributes.update(dialect_name=dialect_name, schema_name=schema_name)
        command.upgrade(config, f"{found or 'base'}:head", sql=True)
    return statements.written


def _unversioned(place: Place) -> DatabaseStoreError:
    return DatabaseStoreError(
        "initialize",
        "the table memory_entries is there already, but no revision is recorded for it; if it is this library's "
        f"table, created by hand, run: {place.alembic('stamp 0001')}; otherwise choose another schema_name or file",
    )


# What follows runs inside Alembic's env.py.


def script_location() -> Path:
    """Where the revisions are: inside the installed package, or at the top of a checkout."""
    packaged = Path(schema.__file__).parent / "migrations"
    return packaged if packaged.is_dir() else Path(schema.__file__).parents[2] / "migrations"


def target_schema() -> str | None:
    """For revisions: the PostgreSQL schema to work in, ``None`` on SQLite."""
    from alembic import op

    context = op.get_context()
    if context.dialect.name == "sqlite":
        return None
    return str(context.opts.get("firefly_schema", schema.POSTGRESQL_SCHEMA))


def run_in_alembic(context: Any) -> None:  # alembic.context, a module that stands in for an EnvironmentContext
    """Run the revisions Alembic asks for on the database of the URL, or only write them down."""
    given = context.config.attributes
    if given:  # by _script()
        _configure_offline(context, given["dialect_name"], given["schema_name"])
        context.run_migrations()
        return
    from alembic.util import CommandError

    try:
        url, schema_name = _target(context)
        if context.is_offline_mode():
            _print_sql(context, url, schema_name)
        else:
            _run_on_url(context, url, schema_name)
    except FireflyMemoryError as error:
        raise CommandError(str(error)) from error


def _target(context: Any) -> tuple[str, str]:
    from firefly_memory.settings import MemorySettings

    arguments = context.get_x_argument(as_dictionary=True)
    settings = MemorySettings()
    url = arguments.get("url") or settings.database_url
    if not url:
        raise ConfigurationError(
            "no database: set FIREFLY_AGENTIC_MEMORY_URL or FIREFLY_AGENTIC_MEMORY_POSTGRES_URL, "
            "or pass -x url=postgresql://…"
        )
    return str(url), checked_schema_name(str(arguments.get("schema") or settings.postgres_schema))


def _is_sqlite(url: str) -> bool:
    return url.lower().startswith(("sqlite:", "sqlite+"))


def _run_on_url(context: Any, url: str, schema_name: str) -> None:
    if _is_sqlite(url):
        from firefly_memory.stores.sql.sqlite.database import sqlite_engine, sqlite_path

        engine = sqlite_engine(sqlite_path(url), pool_size=1, timeout=_PATIENCE, synchronous="FULL")
        place, target = Place(url), None
    else:
        from firefly_memory.stores.sql.postgresql.engines import blocking_engine
        from firefly_memory.stores.sql.postgresql.urls import postgresql_url

        parsed = postgresql_url(url)
        engine = blocking_engine(parsed, pool_size=1, timeout=_PATIENCE)
        place, target = Place(str(parsed), schema_name), schema_name
    command = getattr(context.config.cmd_opts, "cmd", (None,))[0]
    create_schema = getattr(command, "__name__", "upgrade") in {"upgrade", "stamp"}
    try:
        with (
            translated("alembic", place),
            engine.connect() as connection,
            migrating(connection, target, _PATIENCE),
        ):
            _run(context, connection, target, create_schema=create_schema)
    finally:
        engine.dispose()


def _run(context: Any, connection: Connection, schema_name: str | None, *, create_schema: bool) -> None:
    if create_schema:
        _create_schema(connection, schema_name)
    _configure(context, schema_name, connection=connection)
    with context.begin_transaction():
        context.run_migrations()


def _create_schema(connection: Connection, schema_name: str | None) -> None:
    """If it is missing: a role that may not create it may still create tables in it."""
    if schema_name is not None and not inspect(connection).has_schema(schema_name):
        connection.execute(CreateSchema(schema_name, if_not_exists=True))


def _print_sql(context: Any, url: str, schema_name: str) -> None:
    on_sqlite = _is_sqlite(url)
    target = None if on_sqlite else schema_name
    _configure_offline(context, "sqlite" if on_sqlite else "postgresql", target)
    with context.begin_transaction():
        if target is not None and not context.get_starting_revision_argument():
            context.execute(CreateSchema(target, if_not_exists=True))
        context.run_migrations()


def _configure_offline(context: Any, dialect_name: str, schema_name: str | None) -> None:
    _configure(
        context,
        schema_name,
        dialect_name=dialect_name,
        literal_binds=True,
        dialect_opts={"paramstyle": "named"},
        transactional_ddl=True,
    )


def _configure(context: Any, schema_name: str | None, **options: Any) -> None:
    ours = {table.name for table in schema.metadata(schema_name).sorted_tables}

    def is_ours(name: str | None, kind: str, _: Any) -> bool:
        if kind == "schema":
            return name == schema_name
        return kind != "table" or name in ours

    context.configure(
        target_metadata=schema.metadata(schema_name),
        version_table=schema.VERSION_TABLE,
        version_table_schema=schema_name,
        include_schemas=schema_name is not None,
        include_name=is_ours,
        compare_type=True,
        compare_server_default=True,
        render_as_batch=schema_name is None,
        firefly_schema=schema_name,
        **options,
    )
