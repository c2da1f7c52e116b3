"""Migrations: the same revisions from ``initialize()`` and from ``alembic``, one migrator at a time."""

from __future__ import annotations

import hashlib
import re
import threading
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
from firefly_memory.forks import ForkAware
from firefly_memory.stores.sql.errors import Place, driver_error, translated

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
    schema_name = place.schema_name
    with translated("initialize", place), engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        if is_current(connection, schema_name):
            return
        if not migrate:
            raise place.is_not_current("initialize", current_revision(connection, schema_name))
        with migrating(connection, schema_name, timeout):
            # Another process may have been faster. To ask a missing table would end PostgreSQL's transaction.
            there = inspect(connection).has_table(schema.VERSION_TABLE, schema=schema_name)
            if not (there and is_current(connection, schema_name)):
                _upgrade(connection, place)


def is_current(connection: Connection, schema_name: str | None) -> bool:
    """Whether the schema is at the newest revision; ``SchemaMismatchError`` if it is ahead of this version."""
    found = current_revision(connection, schema_name)
    if found is not None and found not in schema.REVISIONS:
        raise SchemaMismatchError("initialize", found, schema.HEAD, "pip install --upgrade firefly-memory")
    return found == schema.HEAD


def current_revision(connection: Connection, schema_name: str | None) -> str | None:
    """The revision the database says it is at, or ``None`` where there is no schema."""
    version = Table(schema.VERSION_TABLE, MetaData(), Column("version_num", Text), schema=schema_name)
    try:
        revisions = connection.execute(select(version.c.version_num)).scalars().all()
    except exc.DBAPIError as error:
        if _is_missing_table(driver_error(error)):
            return None
        raise
    return ", ".join(sorted(revisions)) or None


def _is_missing_table(error: Exception) -> bool:
    return getattr(error, "sqlstate", None) in {"42P01", "3F000"} or "no such table" in str(error)


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
        except BaseException:
            connection.exec_driver_sql("ROLLBACK")
            raise
        connection.exec_driver_sql("COMMIT")
    finally:
        if on_postgresql and not connection.invalidated:
            connection.execute(select(func.pg_advisory_unlock(_lock_key(schema_name))))


def _acquire(connection: Connection, key: int, timeout: float) -> None:
    # Asked for again and again: waiting inside the server would deadlock with CREATE INDEX CONCURRENTLY.
    deadline = time.monotonic() + timeout
    pause = 0.01
    while not connection.execute(select(func.pg_try_advisory_lock(key))).scalar_one():
        if time.monotonic() >= deadline:
            raise StoreTimeoutError("initialize", "another process is still migrating the schema", retryable=True)
        _sleep(connection, pause)
        pause = min(pause * 2, 0.25)


def _sleep(connection: Connection, seconds: float) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_sleep(seconds)))  # on the server, so that an event loop goes on meanwhile
    else:
        time.sleep(seconds)  # in a thread


class _Turns(ForkAware):
    """Whose turn it is to use Alembic: what it works on is global to the process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.watch_forks()

    def after_fork_in_child(self) -> None:
        self.lock = threading.Lock()


_turns = _Turns()


@contextmanager
def _alone_with_alembic(connection: Connection) -> Iterator[None]:
    lock = _turns.lock
    while not lock.acquire(blocking=False):  # blocking would stop an event loop whose other task has the turn
        _sleep(connection, 0.01)
    try:
        yield
    finally:
        lock.release()


def _lock_key(schema_name: str | None) -> int:
    digest = hashlib.sha256(f"firefly-memory {schema_name}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def _upgrade(connection: Connection, place: Place) -> None:
    from alembic import command  # slow to load, and not needed while the schema is current
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(script_location()).replace("%", "%%"))
    config.attributes.update(connection=connection, schema_name=place.schema_name)
    try:
        with _alone_with_alembic(connection):
            command.upgrade(config, "head")
    except exc.ProgrammingError as error:
        if getattr(driver_error(error), "sqlstate", None) == "42P07":
            raise _unversioned(place) from error
        raise
    except exc.OperationalError as error:
        if "already exists" in str(error):
            raise _unversioned(place) from error
        raise


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
    """Run the revisions Alembic asks for: on the connection ``initialize()`` gave it, or on one from the URL."""
    given = context.config.attributes
    if "connection" in given:
        _run(context, given["connection"], given["schema_name"], create_schema=True)
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
    if create_schema and schema_name is not None and not inspect(connection).has_schema(schema_name):
        connection.execute(CreateSchema(schema_name, if_not_exists=True))
    _configure(context, schema_name, connection=connection)
    with context.begin_transaction():
        context.run_migrations()


def _print_sql(context: Any, url: str, schema_name: str) -> None:
    on_sqlite = _is_sqlite(url)
    target = None if on_sqlite else schema_name
    _configure(
        context,
        target,
        dialect_name="sqlite" if on_sqlite else "postgresql",
        literal_binds=True,
        dialect_opts={"paramstyle": "named"},
        transactional_ddl=True,
    )
    with context.begin_transaction():
        if target is not None and not context.get_starting_revision_argument():
            context.execute(CreateSchema(target, if_not_exists=True))
        context.run_migrations()


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
