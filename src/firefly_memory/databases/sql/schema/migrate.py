"""Migrations: the same revisions from ``initialize()`` and from ``alembic``, one migrator at a time."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    delete,
    exc,
    func,
    insert,
    inspect,
    select,
    true,
)
from sqlalchemy.schema import CreateSchema

from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.databases.sql.errors import UNDEFINED_TABLE, DatabaseName, is_an_answer, sqlstate, translated
from firefly_memory.databases.sql.schema import metadata as schema
from firefly_memory.databases.sql.schema import revisions
from firefly_memory.databases.sql.schema.changed_tables import made_by, tables_after
from firefly_memory.databases.sql.schema.migration_lock import begin_alone, online_lock
from firefly_memory.databases.sql.schema.names import MIGRATIONS, WORDS_OF_POSTGRESQL
from firefly_memory.databases.sql.schema.unrecorded import is_in_the_way, unrecorded
from firefly_memory.databases.sql.search_path import rolled_back_on_error
from firefly_memory.errors import (
    ConfigurationError,
    DatabaseStoreError,
    SchemaMismatchError,
    StoreTimeoutError,
)
from firefly_memory.facets import VARIABLE, all_facets
from firefly_memory.reprs import shown

_SCHEMA_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")


def checked_schema_name(name: str) -> str:
    """``name`` if PostgreSQL takes it as an identifier without surprises."""
    if not isinstance(name, str) or not _SCHEMA_NAME.fullmatch(name) or name.lower().startswith("pg_"):
        raise ConfigurationError(
            f"schema_name {shown(name)} cannot be a schema: use up to 63 letters, digits and underscores, not starting "
            "with a digit or pg_"
        )
    if name.lower() in WORDS_OF_POSTGRESQL:
        raise ConfigurationError(f"schema_name {name!r} cannot be a schema: it is a reserved word of PostgreSQL")
    return name


def ensure_schema(engine: Engine, db_name: DatabaseName, *, migrate: bool, timeout: float) -> None:
    """Bring the schema to the revision this version needs, or only check it: one query when it is there already."""
    if not has_schema(engine, db_name, migrate=migrate):
        upgrade_schema(engine, db_name, timeout)


def has_schema(engine: Engine, db_name: DatabaseName, *, migrate: bool) -> bool:
    """Whether the schema is what this version needs. It is an error if nobody may ``migrate`` it there."""
    with connected(engine, db_name) as connection:
        found = _current_revision(connection, db_name)
    if _serves(found):
        return True
    if not migrate:
        raise db_name.is_not_current("initialize", found)
    return False


def _serves(found: str | None) -> bool:
    return found == revisions.head() or (found is not None and revisions.is_later_and_compatible(found))


def upgrade_schema(engine: Engine, db_name: DatabaseName, timeout: float) -> None:
    """Run the revisions that are missing, all of them or none."""
    with connected(engine, db_name) as connection:
        _check_encoding(connection)
        upgrade(connection, db_name, revisions.head(), timeout)


@contextmanager
def connected(engine: Engine, db_name: DatabaseName, operation: str = "initialize") -> Iterator[Connection]:
    """A connection in autocommit mode, which is thrown away unless it is known to be in order at the end."""
    with translated(operation, db_name), engine.connect() as connection:
        try:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            yield connection
        except BaseException as error:
            if not is_an_answer(error):
                connection.invalidate()
            raise


def revision_of(connection: Connection, db_name: DatabaseName) -> str | None:
    """The revision the database says it is at, or ``None`` where there is no schema. Fit for a transaction, which
    PostgreSQL ends when a table is asked for that is not there; in need of one of :mod:`.search_path` there."""
    if not inspect(connection).has_table(schema.VERSION_TABLE, schema=db_name.schema_name):
        return None
    return _joined(connection.execute(select(version_table(db_name).c.version_num)).scalars())


def _current_revision(connection: Connection, db_name: DatabaseName) -> str | None:
    """The same in one query; ``SchemaMismatchError`` if it is ahead of this version."""
    columns: list[Any] = [version_table(db_name).c.version_num]
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
    found = _joined(row[0] for row in rows)
    if found is not None and found not in revisions.revisions() and not _serves(found):
        raise is_ahead("initialize", found)
    return found


def version_table(db_name: DatabaseName) -> Table:
    column: Column[str] = Column("version_num", String(32), nullable=False)
    key = PrimaryKeyConstraint("version_num", name=f"{schema.VERSION_TABLE}_pkc")
    return Table(schema.VERSION_TABLE, MetaData(), column, key, schema=db_name.schema_name)


def _joined(revisions: Iterable[str]) -> str | None:
    return ", ".join(sorted(revisions)) or None


def is_ahead(operation: str, found: str | None) -> SchemaMismatchError:
    return SchemaMismatchError(operation, found, revisions.head(), "pip install --upgrade firefly-memory", OR_A_FACET)


OR_A_FACET = f"if the revision belongs to a facet of another package, name the facet in {VARIABLE}"


_ENCODING = func.pg_catalog.current_setting("server_encoding")


def _check_encoding(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        _refuse_encoding(connection.execute(select(_ENCODING)).scalar_one())


def _refuse_encoding(encoding: str = "UTF8") -> None:
    if encoding != "UTF8":
        reason = f"the database's encoding {encoding} cannot hold every text; use one created with ENCODING 'UTF8'"
        raise DatabaseStoreError("initialize", reason)


LOCK_TIMEOUT = 5.0
"""Seconds that a statement of a migration waits for a lock, before all of it gives up: while it waits, everybody who
comes after it waits as well."""


@contextmanager
def migrating(
    connection: Connection, db_name: DatabaseName, timeout: float, *, lock_timeout: float = LOCK_TIMEOUT
) -> Iterator[None]:
    """Hold the migration lock and a transaction on an autocommit ``connection``: all of the block, or nothing."""
    _begin(connection, db_name, timeout)
    with rolled_back_on_error(connection):
        try:
            _limit_lock_waits(connection, lock_timeout)
            yield
            connection.exec_driver_sql("COMMIT")
        except exc.DBAPIError as error:
            if sqlstate(error) == "55P03":
                raise _is_blocked(lock_timeout) from error
            raise


@contextmanager
def outside_transaction(connection: Connection, db_name: DatabaseName, timeout: float) -> Iterator[None]:
    """Inside :func:`migrating`: commit what came before, run the block in no transaction, and begin the next one."""
    connection.exec_driver_sql("COMMIT")
    with online_lock(connection, db_name, timeout):
        yield
    _begin(connection, db_name, timeout)
    _limit_lock_waits(connection, LOCK_TIMEOUT)


def _begin(connection: Connection, db_name: DatabaseName, timeout: float) -> None:
    if connection.dialect.name == "postgresql":
        begin_alone(connection, db_name, timeout)
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _limit_lock_waits(connection: Connection, seconds: float) -> None:
    if connection.dialect.name == "postgresql":
        milliseconds = str(min(max(1, round(seconds * 1000)), 2**31 - 1))  # as PostgreSQL takes it
        connection.execute(select(func.pg_catalog.set_config("lock_timeout", milliseconds, true())))


def _is_blocked(lock_timeout: float) -> StoreTimeoutError:
    reason = (
        f"another transaction has held a table for {lock_timeout:g} seconds; nothing has been changed; end that "
        "transaction (pg_stat_activity names it), or try again when there is less to do"
    )
    return StoreTimeoutError("migration", reason, retryable=True)


def upgrade(
    connection: Connection,
    db_name: DatabaseName,
    target: str | None,
    timeout: float,
    *,
    lock_timeout: float = LOCK_TIMEOUT,
) -> list[str]:
    """Run the revisions that are missing up to ``target``, and return which: all or none of those between two online
    ones, and each online one by itself."""
    ran: list[str] = []
    while True:
        with migrating(connection, db_name, timeout, lock_timeout=lock_timeout):
            found = revision_of(connection, db_name)  # another process may have been faster
            missing = missing_between(found, target)
            together = list(takewhile(lambda revision: not revisions.revision_named(revision).online, missing))
            if together:
                _run_upgrade(connection, db_name, found, together[-1])
        ran += together
        if len(together) == len(missing):
            return ran
        ran += _run_online(connection, db_name, missing[len(together)], timeout)


def missing_between(found: str | None, target: str | None) -> tuple[str, ...]:
    """The revisions after ``found``, up to ``target``; none where a later version has been."""
    if found is not None and found not in revisions.revisions():
        if revisions.is_later_and_compatible(found):
            return ()
        raise is_ahead("upgrade", found)
    return revisions.revisions()[position(found) : position(target)]


def position(revision: str | None) -> int:
    """How many revisions lead to it."""
    return 0 if revision is None else revisions.revisions().index(revision) + 1


def _run_online(connection: Connection, db_name: DatabaseName, revision: str, timeout: float) -> list[str]:
    """One revision that must not run in a transaction: by whoever gets there first, while the others wait for it.

    It may take hours, and writers go on meanwhile. What holds the others off is a lock of the session.
    """
    with online_lock(connection, db_name, timeout):
        found = revision_of(connection, db_name)
        if revision not in missing_between(found, revision):
            return []  # somebody has done it meanwhile
        steps = script(connection.dialect.name, db_name.schema_name, "upgrade", f"{found or 'base'}:{revision}")
        run_script(connection, db_name, [step for step in steps if step not in ("BEGIN", "COMMIT")])
        return [revision]


def _run_upgrade(connection: Connection, db_name: DatabaseName, found: str | None, target: str) -> None:
    create_schema(connection, db_name.schema_name)
    steps = script(connection.dialect.name, db_name.schema_name, "upgrade", f"{found or 'base'}:{target}")
    if found is None and inspect(connection).has_table(schema.VERSION_TABLE, schema=db_name.schema_name):
        del steps[0]  # makes the table, which a downgrade has left, empty
    _check_room(connection, db_name, found, steps)
    run_script(connection, db_name, steps)


def _check_room(connection: Connection, db_name: DatabaseName, found: str | None, steps: list[str]) -> None:
    """That no table or column is there yet which ``steps`` make: once a statement has failed, PostgreSQL tells no
    more."""
    made = list(made_by(steps))
    there = _those_there(connection, db_name, made)
    taken = next((name for name in made if name in there), None)
    if taken is not None:
        dialect, tables = connection.dialect.name, dict[str, set[str]]()
        for before, after in pairwise(("base", *revisions.revisions())):
            steps = script(dialect, None, "upgrade", f"{before}:{after}")
            tables[after] = tables_after(steps, tables.get(before, ()))
        there = _those_there(connection, db_name, set().union(*tables.values()))
        raise unrecorded(db_name, taken, found, there, tables)


def _those_there(connection: Connection, db_name: DatabaseName, names: Iterable[str]) -> set[str]:
    """All tables, and those of the added columns ``names`` that are there."""
    look, schema_name = inspect(connection), db_name.schema_name
    there = {*look.get_table_names(schema=schema_name)}
    for table in {name.partition(".")[0] for name in names if "." in name} & there:
        there |= {f"{table}.{column['name']}" for column in look.get_columns(table, schema=schema_name)}
    return there


def create_schema(connection: Connection, schema_name: str | None) -> None:
    """If it is missing: a role that may not create it may still create tables in it."""
    if schema_name is not None and not inspect(connection).has_schema(schema_name):
        connection.execute(CreateSchema(schema_name, if_not_exists=True))


def write_revision(connection: Connection, db_name: DatabaseName, revision: str | None) -> None:
    """Inside :func:`migrating`: say that the database is at ``revision``."""
    create_schema(connection, db_name.schema_name)
    version = version_table(db_name)
    version.create(connection, checkfirst=True)
    connection.execute(delete(version))
    if revision is not None:
        connection.execute(insert(version).values(version_num=revision))


def add_sqlite_functions(connection: Connection) -> None:
    """Those that revisions call."""
    for facet in all_facets():
        add = facet.stored("sqlite_functions")
        if add is not None:
            add(connection)


def run_script(connection: Connection, db_name: DatabaseName, steps: Iterable[str]) -> None:
    if connection.dialect.name == "sqlite":
        add_sqlite_functions(connection)
    try:
        for statement in steps:
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
    except exc.DBAPIError as error:
        if sqlstate(error) == "42P07" or (db_name.schema_name is None and "already exists" in str(error)):
            raise is_in_the_way(error) from error
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


def script(
    dialect_name: str, schema_name: str | None, step: str, between: str, *, for_others: bool = False
) -> list[str]:
    """The statements of ``step``, ``upgrade`` or ``downgrade``, ``between`` two revisions, ``from:to``.

    Alembic writes them, and never sees a connection: its global lock is not held while anybody waits for a database,
    and so nobody can wait for the lock in the thread that has to answer. ``for_others`` leaves out what only
    :func:`run_script` can run.
    """
    return list(_script(tuple(revisions.folders()), dialect_name, schema_name, step, between, for_others))


@lru_cache(maxsize=64)
def _script(
    folders: tuple[Path, ...], dialect_name: str, schema_name: str | None, step: str, between: str, for_others: bool
) -> tuple[str, ...]:
    """Alembic takes as long to write them as a new SQLite database takes to run them."""
    statements = _Statements()
    with _alembic:
        from alembic import command  # slow to load, and not needed while the schema is current
        from alembic.config import Config

        config = Config(output_buffer=statements)
        set_locations(config, folders)
        config.attributes.update(dialect_name=dialect_name, schema_name=schema_name, computes=not for_others)
        getattr(command, step)(config, between, sql=True)
    return tuple(statements.written)


def set_locations(config: Any, folders: Iterable[Path]) -> None:
    """Tell Alembic's ``config`` where its environment is, and in which ``folders`` the revisions are."""
    config.set_main_option("script_location", _escaped(MIGRATIONS))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", "\n".join(map(_escaped, folders)))


def _escaped(path: Path) -> str:
    return str(path).replace("%", "%%")
