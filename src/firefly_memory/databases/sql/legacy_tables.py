"""Tables that somebody else made: looked at and read, never written."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    JSON,
    Connection,
    Engine,
    Text,
    case,
    cast,
    column,
    func,
    inspect,
    null,
    select,
    table,
)
from sqlalchemy.exc import SAWarning

from firefly_memory.databases.sql.errors import DatabaseName, translated
from firefly_memory.databases.sql.estimates import estimated_rows
from firefly_memory.databases.sql.schema import metadata as schema
from firefly_memory.databases.sql.schema import migrate
from firefly_memory.databases.sql.search_path import ONLY_PG_CATALOG
from firefly_memory.errors import DatabaseStoreError

_EVERY_ROW = "SET LOCAL row_security = off"
"""An error, where policies of the table's owner would hide rows from the role, and run as the role."""

Open = Callable[[str, str, float], AbstractContextManager[tuple[Engine, DatabaseName]]]
"""Opens the database of a URL, with the name of a schema and a time-out."""

_AT_ONCE = 200  # rows that are in memory


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """A table, and for each of its columns whether the database knows that it holds JSON."""

    schema_name: str | None
    name: str
    columns: dict[str, bool]

    def __str__(self) -> str:
        return self.name if self.schema_name is None else f"{self.schema_name}.{self.name}"


class ForeignTables:
    """What is in a database."""

    def __init__(self, connection: Connection, db_name: DatabaseName) -> None:
        self._connection = connection
        self._db_name = db_name

    def all(self) -> list[ForeignTable]:
        """Every table that is not this library's."""
        with self._reading(), warnings.catch_warnings(action="ignore", category=SAWarning):  # types of extensions
            inspector = inspect(self._connection)
            schemas = [None] if self._db_name.schema_name is None else inspector.get_schema_names()
            return [
                ForeignTable(schema_name, name, {each["name"]: isinstance(each["type"], JSON) for each in columns})
                for schema_name in schemas
                if schema_name != "information_schema"
                for (_, name), columns in inspector.get_multi_columns(schema=schema_name).items()
                if not self._is_ours(schema_name, name)
            ]

    def _is_ours(self, schema_name: str | None, name: str) -> bool:
        ours = {*(each.name for each in schema.metadata(None).tables.values()), schema.VERSION_TABLE}
        return name in ours and self._revision(schema_name) is not None

    def _revision(self, schema_name: str | None) -> str | None:
        return migrate.revision_of(self._connection, DatabaseName(self._db_name.name, schema_name))

    def revision(self) -> str | None:
        """The revision of this library's schema, if it is here."""
        with self._reading():
            return self._revision(self._db_name.schema_name)

    def in_the_way(self) -> list[str]:
        """Tables and indexes with the names of this library's, where it has not made any yet."""
        name = self._db_name.schema_name
        if self.revision() is not None:
            return []
        with self._reading(), warnings.catch_warnings(action="ignore", category=SAWarning):
            inspector = inspect(self._connection)
            ours = schema.metadata(None).tables.values()
            names = {each.name for each in ours} | {str(index.name) for each in ours for index in each.indexes}
            there = set(inspector.get_table_names(schema=name))
            for indexes in inspector.get_multi_indexes(schema=name).values():
                there.update(str(each["name"]) for each in indexes)
            return sorted(names & there)

    def has_unique(self, found: ForeignTable, columns: set[str]) -> bool:
        """Whether no two rows have the same values in all ``columns``."""
        with self._reading(), warnings.catch_warnings(action="ignore", category=SAWarning):
            inspector, of = inspect(self._connection), (found.name, found.schema_name)
            keys: list[Any] = [inspector.get_pk_constraint(*of)["constrained_columns"]]
            keys += [each["column_names"] for each in inspector.get_unique_constraints(*of)]
            for index in inspector.get_indexes(*of):
                if index["unique"] and not any(name.endswith("_where") for name in index.get("dialect_options", {})):
                    keys.append(index["column_names"])
            return any(key and columns.issuperset(key) for key in keys)

    def estimate(self, found: ForeignTable) -> int | None:
        """About how many rows there are; ``None`` of a table that numbers no rows."""
        try:
            with self._reading():
                return estimated_rows(self._connection, [found.name], found.schema_name).get(found.name)
        except DatabaseStoreError:
            return None

    def rows(self, found: ForeignTable, document: str) -> Iterator[tuple[Any, Any, str | dict[str, Any]]]:
        """Namespace, ``entry_id``, and the row itself, as PostgreSQL's JSON text for it or as a dict.

        In the order of namespaces and, as far as the place can tell, of time. ``document`` is the column with the
        content. One bad value does not end the reading: nothing but text crosses the border.
        """
        names = list(found.columns)
        old = table(found.name, *[column(name) for name in names], schema=found.schema_name)
        when: Any = old.c.created_at if "created_at" in found.columns else null()
        if found.schema_name is None:
            if "created_at" not in found.columns:
                when = case((func.json_valid(old.c[document]), func.json_extract(old.c[document], "$.created_at")))
            statement = select(old.c.namespace, old.c.entry_id, old).order_by(old.c.namespace, when)
        else:
            # Sorted inside, where values that are kept elsewhere need not be fetched yet.
            row = select(old).order_by(old.c.namespace, when).subquery("old")
            ids = [cast(row.c[name], Text) for name in ("namespace", "entry_id")]
            statement = select(*ids, cast(func.pg_catalog.row_to_json(row.table_valued()), Text))
        streaming = self._connection.execution_options(stream_results=True, yield_per=_AT_ONCE)
        with self._reading(), streaming.execute(statement) as result:
            for namespace, entry_id, *values in result:
                as_text = found.schema_name is not None
                yield namespace, entry_id, values[0] if as_text else dict(zip(names, values, strict=True))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with translated("import-legacy", self._db_name):
            yield


@contextmanager
def foreign_tables(database: AbstractContextManager[tuple[Engine, DatabaseName]]) -> Iterator[ForeignTables]:
    """The tables of a database, as they are now; nothing that is done with them can change any of them.

    The schema of its place is where this library's are, or would be, on PostgreSQL.
    """
    with database as (engine, db_name):
        with translated("import-legacy", db_name):
            connection = engine.connect()
        with connection:
            if db_name.schema_name is not None:
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
                with translated("import-legacy", db_name):
                    # For the one transaction that all of it is.
                    connection.exec_driver_sql(ONLY_PG_CATALOG)
                    connection.exec_driver_sql(_EVERY_ROW)
            yield ForeignTables(connection, db_name)
