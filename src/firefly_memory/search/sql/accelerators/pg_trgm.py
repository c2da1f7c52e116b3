"""pg_trgm: an index of trigrams for the mode ``fuzzy``. PostgreSQL chooses it for the same statement as without it."""

from __future__ import annotations

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import pg_catalog

from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.postgresql.identifiers import quoted
from firefly_memory.databases.sql.schema.accelerators import Accelerator, AcceleratorState, Progress, Wanted
from firefly_memory.databases.sql.schema.migration_lock import online_lock
from firefly_memory.errors import ConfigurationError
from firefly_memory.search.index import Subject
from firefly_memory.search.sql.accelerators.extensions import extension_in, is_offered, needed

NAME = "pg_trgm"
PACKAGE = "PostgreSQL's contrib package, which has pg_trgm"


def index_name(subject: Subject) -> str:
    """The name of the index."""
    return f"idx_{subject.table.removeprefix('memory_')}_trigrams"


class Trigrams:
    """The index of trigrams of one subject."""

    name = NAME

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def states(self, connection: Connection, schema_name: str) -> list[Accelerator]:
        valid = index_is_valid(connection, schema_name, self._subject.table, index_name(self._subject))
        if valid is not None:
            state, problem = (
                (AcceleratorState.ENABLED, "") if valid else (AcceleratorState.BROKEN, "without a complete index")
            )
        elif extension_in(connection, NAME) is None and not is_offered(connection, NAME):
            state, problem = AcceleratorState.NOT_OFFERED, "the server does not offer the extension"
        else:
            state, problem = AcceleratorState.DISABLED, ""
        return [Accelerator(kind=self._subject.kind, name=NAME, state=state, problem=problem)]

    def enable(
        self,
        connection: Connection,
        db_name: DatabaseName,
        wanted: Wanted,
        timeout: float,
        progress: Progress | None,
    ) -> None:
        _refuse_embedder(wanted)
        schema_name, subject = str(db_name.schema_name), self._subject
        with online_lock(connection, db_name, timeout):
            extension = needed(connection, NAME, PACKAGE)
            build_index(
                connection,
                schema_name,
                subject.table,
                index_name(subject),
                f"gin (searchable {quoted(extension.schema)}.gin_trgm_ops)",
            )

    def disable(self, connection: Connection, db_name: DatabaseName, wanted: Wanted, timeout: float) -> None:
        _refuse_embedder(wanted)
        with online_lock(connection, db_name, timeout):
            drop_index(connection, str(db_name.schema_name), index_name(self._subject))


def _refuse_embedder(wanted: Wanted) -> None:
    if wanted.embedder is not None:
        raise ConfigurationError("pg_trgm is for texts, and has no embedder; leave the embedder out")


def index_is_valid(connection: Connection, schema_name: str, table: str, name: str) -> bool | None:
    """Whether an index is complete; ``None`` if it is not there."""
    classes, indexes, spaces = pg_catalog.pg_class, pg_catalog.pg_index, pg_catalog.pg_namespace
    of = classes.alias("of")
    found = (
        select(indexes.c.indisvalid)
        .join(classes, classes.c.oid == indexes.c.indexrelid)
        .join(of, of.c.oid == indexes.c.indrelid)
        .join(spaces, spaces.c.oid == of.c.relnamespace)
        .where(spaces.c.nspname == schema_name, of.c.relname == table, classes.c.relname == name)
    )
    valid: bool | None = connection.execute(found).scalar_one_or_none()
    return valid


def build_index(connection: Connection, schema_name: str, table: str, name: str, definition: str) -> None:
    """Build an index while others read and write. What a broken build has left is built anew; outside of a transaction,
    under the lock of online revisions."""
    valid = index_is_valid(connection, schema_name, table, name)
    if valid:
        return
    if valid is not None:
        drop_index(connection, schema_name, name)
    connection.exec_driver_sql(
        f"CREATE INDEX CONCURRENTLY {name} ON {quoted(schema_name)}.{table} USING {definition}",
        execution_options={"no_parameters": True},
    )


def drop_index(connection: Connection, schema_name: str, name: str) -> None:
    """Drop an index while others read and write."""
    connection.exec_driver_sql(
        f"DROP INDEX CONCURRENTLY IF EXISTS {quoted(schema_name)}.{name}", execution_options={"no_parameters": True}
    )
