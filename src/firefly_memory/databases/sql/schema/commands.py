"""What ``firefly-memory db`` does to a SQL database, without the words around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from sqlalchemy import Connection, Engine, func, select, table

from firefly_memory.databases.diagnostics import Difference
from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.estimates import estimated_rows
from firefly_memory.databases.sql.schema import metadata as schema
from firefly_memory.databases.sql.schema import migrate, revisions
from firefly_memory.databases.sql.schema.changed_tables import losses_of
from firefly_memory.databases.sql.schema.columns import ROWS_OF_ITS_REVISION
from firefly_memory.databases.sql.schema.drift import differences
from firefly_memory.databases.sql.schema.objects import tables_of_objects
from firefly_memory.databases.sql.search_path import ONLY_PG_CATALOG, pinned_for_reading
from firefly_memory.errors import ConfigurationError

BASE, HEAD = "base", "head"


class State(Enum):
    """Where a database is, seen from this version of the library."""

    CURRENT = "current"
    BEHIND = "behind"
    COMPATIBLE = "ahead, compatible"
    """A newer version migrated it, and said that this version goes on working with it."""
    AHEAD = "ahead"


@dataclass(frozen=True, slots=True)
class Status:
    """The revision of a database."""

    revision: str | None

    @property
    def state(self) -> State:
        if self.revision == revisions.head():
            return State.CURRENT
        if self.revision is None or self.revision in revisions.revisions():
            return State.BEHIND
        return State.COMPATIBLE if revisions.is_later_and_compatible(self.revision) else State.AHEAD

    @property
    def is_ahead(self) -> bool:
        """Whether a newer version of the library migrated it, with revisions that this one does not know."""
        return self.state in (State.COMPATIBLE, State.AHEAD)

    @property
    def pending(self) -> tuple[str, ...]:
        """The revisions that are missing, oldest first."""
        return () if self.is_ahead else revisions.revisions()[migrate.position(self.revision) :]


@dataclass(frozen=True, slots=True)
class Loss:
    """A table that is dropped, or loses columns, and how many rows it has."""

    table: str
    rows: int


@dataclass(frozen=True, slots=True)
class Downgrade:
    """What a downgrade of ``database`` would undo, newest first, and what would be lost. ``where`` tells it from others
    of its name, without a password."""

    database: str
    where: str
    undone: list[str]
    losses: list[Loss]


class Administration:
    """One SQL database and its schema."""

    def __init__(
        self, engine: Engine, db_name: DatabaseName, *, timeout: float, lock_timeout: float | None = None
    ) -> None:
        self._engine = engine
        self._db_name = db_name
        self._timeout = timeout
        self._lock_timeout = migrate.LOCK_TIMEOUT if lock_timeout is None else lock_timeout

    def status(self) -> Status:
        """Where the database is."""
        self._must_exist("current")
        with self._reading("current") as connection:
            return Status(migrate.revision_of(connection, self._db_name))

    def differences(self) -> tuple[Status, list[Difference]]:
        """What is not as this version needs it; nothing is compared unless the revision is this version's."""
        self._must_exist("check")
        with self._reading("check") as connection:
            status = Status(migrate.revision_of(connection, self._db_name))
            found = status.state is State.CURRENT
            return status, differences(connection, self._db_name.schema_name) if found else []

    def estimates(self) -> dict[str, int]:
        """About how many rows each table has."""
        self._must_exist("estimate")
        names = [each.name for each in schema.metadata(self._db_name.schema_name).sorted_tables]
        with self._reading("estimate") as connection:
            return estimated_rows(connection, names, self._db_name.schema_name)

    def upgrade(self, target: str = HEAD) -> list[str]:
        """Run the revisions up to ``target``, all or none, and return which."""
        last = checked_revision(target)
        with self._connected("upgrade") as connection:
            return migrate.upgrade(connection, self._db_name, last, self._timeout, lock_timeout=self._lock_timeout)

    def downgrade_plan(self, target: str) -> Downgrade:
        """What :meth:`downgrade` would do now. Nothing is changed."""
        last = checked_revision(target)
        self._must_exist("downgrade")
        with self._reading("downgrade") as connection:
            found = migrate.revision_of(connection, self._db_name)
            if Status(found).is_ahead:
                raise migrate.is_ahead("downgrade", found)
            undone, steps = self._undoing(connection, found, last)
            full_text = tables_of_objects()  # made of other tables
            losses = [Loss(each, self._rows(connection, each)) for each in losses_of(steps) if each not in full_text]
            return Downgrade(self._name(connection), self._where(), undone, losses)

    def _undoing(self, connection: Connection, found: str | None, last: str | None) -> tuple[list[str], list[str]]:
        """The revisions to undo, newest first, and the statements that undo them."""
        undone = revisions.revisions()[migrate.position(last) : migrate.position(found)]
        if not undone:
            return [], []
        between = f"{found}:{last or BASE}"
        steps = migrate.script(connection.dialect.name, self._db_name.schema_name, "downgrade", between)
        return list(reversed(undone)), steps

    def _name(self, connection: Connection) -> str:
        """As people call the database."""
        if self._db_name.file is not None:
            return self._db_name.file.name
        if connection.dialect.name == "sqlite":
            return self._db_name.name
        return str(connection.execute(select(func.pg_catalog.current_database())).scalar_one())

    def _where(self) -> str:
        name, schema_name = self._db_name
        if self._db_name.file is not None:
            return str(self._db_name.file.absolute())
        return name if schema_name is None else f"{name}, schema {schema_name}"

    def _rows(self, connection: Connection, name: str) -> int:
        counted = select(func.count()).select_from(table(name, schema=self._db_name.schema_name))
        registered = schema.metadata(None).tables.get(name)
        of_its_revision = 0 if registered is None else registered.info.get(ROWS_OF_ITS_REVISION, 0)
        return max(0, int(connection.execute(counted).scalar_one()) - of_its_revision)

    def downgrade(self, target: str) -> list[str]:
        """Undo the revisions after ``target``, all or none, and return which, newest first."""
        last = checked_revision(target)
        self._must_exist("downgrade")
        with self._migrating("downgrade") as (connection, found):
            undone, steps = self._undoing(connection, found, last)
            migrate.run_script(connection, self._db_name, steps)
            return undone

    def stamp(self, target: str) -> None:
        """Write down that the database is at ``target``, and change nothing else."""
        revision = checked_revision(target)
        self._must_exist("stamp")
        with self._connected("stamp") as connection, migrate.migrating(connection, self._db_name, self._timeout):
            migrate.write_revision(connection, self._db_name, revision)

    @contextmanager
    def _migrating(self, operation: str) -> Iterator[tuple[Connection, str | None]]:
        with (
            self._connected(operation) as connection,
            migrate.migrating(connection, self._db_name, self._timeout, lock_timeout=self._lock_timeout),
        ):
            found = migrate.revision_of(connection, self._db_name)
            if Status(found).is_ahead:
                raise migrate.is_ahead(operation, found)
            yield connection, found

    @contextmanager
    def _connected(self, operation: str) -> Iterator[Connection]:
        with migrate.connected(self._engine, self._db_name, operation) as connection:
            yield connection

    @contextmanager
    def _reading(self, operation: str) -> Iterator[Connection]:
        with self._connected(operation) as connection, pinned_for_reading(connection):
            yield connection

    def _must_exist(self, operation: str) -> None:
        path = self._db_name.file
        if path is not None and not path.exists():
            raise self._db_name.is_missing(operation)


@dataclass(frozen=True, slots=True)
class Revision:
    """One step of the schema."""

    revision: str
    title: str


def history() -> list[Revision]:
    """The revisions that this version knows, oldest first."""
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    migrate.set_locations(config, revisions.folders())
    known = {each.revision: each.doc for each in ScriptDirectory.from_config(config).walk_revisions()}
    return [Revision(name, known[name]) for name in revisions.revisions()]


def script(dialect_name: str, schema_name: str, start: str, end: str) -> str:
    """The SQL that leads from revision ``start`` to ``end``, up or down, as one transaction."""
    first, last = checked_revision(start), checked_revision(end)
    on_postgresql = dialect_name == "postgresql"
    target = migrate.checked_schema_name(schema_name) if on_postgresql else None
    step = "upgrade" if migrate.position(first) <= migrate.position(last) else "downgrade"
    lines = [
        f"-- firefly-memory: {step} {first or BASE} to {last or BASE}",
        "BEGIN;" if on_postgresql else "BEGIN IMMEDIATE;",
    ]
    if on_postgresql:
        lines.append(f"{ONLY_PG_CATALOG};")
        lines.append(f"SET LOCAL lock_timeout = '{migrate.LOCK_TIMEOUT:g}s';")
        if first is None and last is not None:
            from firefly_memory.databases.sql.postgresql.identifiers import quoted

            lines.append(f"CREATE SCHEMA IF NOT EXISTS {quoted(str(target))};")
    if first != last:
        steps = migrate.script(dialect_name, target, step, f"{first or BASE}:{last or BASE}", for_others=True)
        lines += [f"{statement};" for statement in steps]
    return "\n\n".join([*lines, "COMMIT;"]) + "\n"


def grants(role: str, schema_name: str) -> list[str]:
    """What a role of PostgreSQL needs so that a store works for it with ``migrate=False``, and no more."""
    from firefly_memory.databases.sql.postgresql.identifiers import quoted, quoted_role

    name = migrate.checked_schema_name(schema_name)
    of, to = quoted(name), quoted_role(role)
    tables = ", ".join(f"{of}.{table.name}" for table in schema.metadata(name).sorted_tables)
    return [
        f"GRANT USAGE ON SCHEMA {of} TO {to};",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {to};",
        f"GRANT SELECT ON {of}.{schema.VERSION_TABLE} TO {to};",
    ]


def checked_revision(name: str) -> str | None:
    """``name`` as a revision of this version; ``None`` for the empty schema."""
    if name == BASE:
        return None
    revision = revisions.head() if name == HEAD else name
    if revision not in revisions.revisions():
        known = ", ".join(revisions.revisions())
        raise ConfigurationError(f"there is no revision {name!r}; there are {BASE}, {known}, and {HEAD} for the newest")
    return revision
