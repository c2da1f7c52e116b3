"""What runs inside Alembic's env.py: the same revisions and the same lock for ``alembic`` as for everybody else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.schema import CreateSchema

from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.schema import metadata as schema
from firefly_memory.databases.sql.schema import revisions
from firefly_memory.databases.sql.schema.accelerators import is_of_an_accelerator
from firefly_memory.databases.sql.schema.alembic_guard import keep_others_out
from firefly_memory.databases.sql.schema.migrate import (
    add_sqlite_functions,
    connected,
    create_schema,
    migrating,
    outside_transaction,
)
from firefly_memory.databases.sql.schema.names import REVISIONS_OF_THE_LIBRARY
from firefly_memory.databases.sql.search_path import ONLY_PG_CATALOG, pinned_for_reading
from firefly_memory.errors import FireflyMemoryError

keep_others_out()  # every revision of ours imports this module, also where Alembic does not run env.py

_READING = {"current", "check"}

TIMEOUT = 60.0  # seconds that `alembic` waits for a server, or for another migrator


@dataclass(frozen=True, slots=True)
class NamedDatabase:
    """The database that ``alembic`` is to work on: ``open(TIMEOUT, reading=…)`` opens it."""

    dialect_name: str
    schema_name: str
    """For PostgreSQL; SQLite has none."""

    open: Callable[..., AbstractContextManager[tuple[Engine, DatabaseName]]]


def target_schema() -> str | None:
    """For revisions: the PostgreSQL schema to work in, ``None`` on SQLite."""
    from alembic import op

    context = op.get_context()
    if context.dialect.name == "sqlite":
        return None
    return str(context.opts.get("firefly_schema", schema.POSTGRESQL_SCHEMA))


def computes_fact_ids() -> bool:
    """For revisions on SQLite: whether their statements can compute the ids of facts, or somebody else runs them."""
    from alembic import op

    context = op.get_context()
    if context.as_sql:
        return bool(context.opts.get("firefly_computes"))
    add_sqlite_functions(op.get_bind())
    return True


def create_index_online(name: str, table: str, columns: list[Any], **options: Any) -> None:
    """For revisions with the line ``online = True``: an index on a table that may be large, while others read and write
    it. What a broken build has left is built anew."""
    from alembic import op

    if op.get_context().dialect.name == "sqlite":
        op.create_index(name, table, columns, if_not_exists=True, **options)
        return
    db_name: dict[str, Any] = {"schema": target_schema(), "postgresql_concurrently": True}
    with op.get_context().opts.get("firefly_outside", op.get_context().autocommit_block)():
        op.drop_index(name, table, if_exists=True, **db_name)
        op.create_index(name, table, columns, **db_name, **options)


def run_in_environment(
    context: Any,  # alembic.context, a module that stands in for an EnvironmentContext
    database_named: Callable[[Mapping[str, str]], NamedDatabase],
) -> None:
    """Run the revisions Alembic asks for on the database that its arguments ``-x`` and the environment name, or only
    write them down."""
    given = context.config.attributes
    if given:  # by _script()
        _configure_offline(context, given["dialect_name"], given["schema_name"], computes=given["computes"])
        context.run_migrations()
        return
    from alembic.util import CommandError

    try:
        database = database_named(context.get_x_argument(as_dictionary=True))
        _add_folders(context.script)
        if context.is_offline_mode():
            _print_sql(context, database)
        else:
            _run_on(context, database)
    except FireflyMemoryError as error:
        raise CommandError(str(error)) from error


def _add_folders(script: Any) -> None:
    """Tell Alembic where the revisions of other packages' facets are. It has read no revision so far."""
    beyond = [str(each) for each in revisions.folders() if each != REVISIONS_OF_THE_LIBRARY]
    there = script.version_locations or [str(Path(script.dir) / "versions")]
    script.version_locations = [*there, *(each for each in beyond if each not in there)]


def _run_on(context: Any, database: NamedDatabase) -> None:
    command = getattr(getattr(context.config.cmd_opts, "cmd", (None,))[0], "__name__", "upgrade")
    if command in _READING:
        with (
            database.open(TIMEOUT, reading=True) as (engine, db_name),
            connected(engine, db_name, "alembic") as connection,
            pinned_for_reading(connection),
        ):
            _run(context, connection, db_name.schema_name, makes_schema=False)
        return
    makes_schema = command in {"upgrade", "stamp"}
    with database.open(TIMEOUT) as (engine, db_name):
        if command != "upgrade" and db_name.file is not None and not db_name.file.exists():
            raise db_name.is_missing(command)
        with connected(engine, db_name, "alembic") as connection, migrating(connection, db_name, TIMEOUT):
            outside = partial(outside_transaction, connection, db_name, TIMEOUT)
            _run(context, connection, db_name.schema_name, makes_schema=makes_schema, firefly_outside=outside)


def _run(context: Any, connection: Connection, schema_name: str | None, *, makes_schema: bool, **options: Any) -> None:
    if makes_schema:
        create_schema(connection, schema_name)
    _configure(context, schema_name, connection=connection, **options)
    with context.begin_transaction():
        context.run_migrations()


def _print_sql(context: Any, database: NamedDatabase) -> None:
    target = None if database.dialect_name == "sqlite" else database.schema_name
    _configure_offline(context, database.dialect_name, target)
    with context.begin_transaction():
        if target is not None:
            context.execute(ONLY_PG_CATALOG)
        if target is not None and not context.get_starting_revision_argument():
            context.execute(CreateSchema(target, if_not_exists=True))
        context.run_migrations()


def _configure_offline(context: Any, dialect_name: str, schema_name: str | None, *, computes: bool = False) -> None:
    _configure(
        context,
        schema_name,
        dialect_name=dialect_name,
        literal_binds=True,
        dialect_opts={"paramstyle": "named"},
        transactional_ddl=True,
        firefly_computes=computes,
    )


def _configure(context: Any, schema_name: str | None, **options: Any) -> None:
    ours = {table.name for table in schema.metadata(schema_name).sorted_tables}

    def is_ours(name: str | None, kind: str, _: Any) -> bool:
        if kind == "schema":
            return name == schema_name
        if kind in ("column", "index"):
            return not is_of_an_accelerator(name)
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
