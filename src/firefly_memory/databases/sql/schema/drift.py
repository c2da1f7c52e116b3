"""What the tables are really like, object by object, and how that differs from what this version needs.

Alembic's autogenerate compares columns, and which of them an index has. This compares defaults, checks, collations and
predicates as well, finds indexes that a broken build has left invalid, and says which statement mends what it finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from alembic.ddl.base import AddColumn, ColumnDefault, ColumnNullable, ColumnType
from sqlalchemy import (
    CheckConstraint,
    Column,
    Computed,
    Connection,
    Identity,
    Index,
    Table,
    column,
    func,
    inspect,
    select,
    table,
)
from sqlalchemy.dialects.postgresql import pg_catalog
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateTable, DropConstraint, DropIndex, ExecutableDDLElement

from firefly_memory.databases.diagnostics import MISSING, Difference
from firefly_memory.databases.sql.schema import metadata as schema
from firefly_memory.databases.sql.schema.accelerators import broken_accelerators
from firefly_memory.databases.sql.schema.objects import object_differences


def differences(connection: Connection, schema_name: str | None) -> list[Difference]:
    """Every difference between the database and the schema of the code: none where all is well."""
    compare = _Comparison(connection, schema_name)
    of_tables = [found for one in schema.metadata(schema_name).sorted_tables for found in compare.table(one)]
    others = *object_differences(connection, schema_name), *broken_accelerators(connection, schema_name)
    return [*of_tables, *others]


class _Comparison:
    def __init__(self, connection: Connection, schema_name: str | None) -> None:
        self._connection = connection
        self._schema = schema_name
        self._real = inspect(connection)
        self._tables = set(self._real.get_table_names(schema=schema_name))

    def table(self, wanted: Table) -> Iterator[Difference]:
        indexes = sorted(wanted.indexes, key=lambda index: str(index.name))
        if wanted.name not in self._tables:
            mend = self._statements(CreateTable(wanted), *map(CreateIndex, indexes))
            yield Difference(f"table {wanted.name}", MISSING, "there", mend)
            return
        yield from self._columns(wanted)
        yield from self._constraints(wanted)
        real = self._index_definitions(wanted.name)
        for index in indexes:
            expected, found = self._expected(index), real.get(str(index.name))
            if found is None or _plain(found) != _plain(expected):
                drop = [] if found is None else [DropIndex(index)]
                mend = self._statements(*drop, CreateIndex(index))
                yield Difference(f"index {index.name} of {wanted.name}", found or MISSING, expected, mend)

    def _columns(self, wanted: Table) -> Iterator[Difference]:
        real = {each["name"]: each for each in self._real.get_columns(wanted.name, schema=self._schema)}
        for one in wanted.columns:
            what = f"column {one.name} of {wanted.name}"
            db_name: dict[str, Any] = {"schema": self._schema}
            if one.name not in real:
                add = self._statements(AddColumn(wanted.name, one, **db_name))
                yield Difference(what, MISSING, self._type(one.type), add)
                continue
            found = real[one.name]
            kind, expected = self._type(found["type"]), self._type(one.type)
            if kind != expected:
                yield Difference(
                    what, kind, expected, self._altered(ColumnType(wanted.name, one.name, one.type, **db_name))
                )
            if found["nullable"] != one.nullable:
                change = ColumnNullable(wanted.name, one.name, bool(one.nullable), existing_type=one.type, **db_name)
                names = {True: "NULL", False: "NOT NULL"}
                yield Difference(what, names[found["nullable"]], names[bool(one.nullable)], self._altered(change))
            default, wanted_default = _found_default(found), _default(one)
            if _plain(default or "") != _plain(wanted_default or ""):
                set_default = ColumnDefault(
                    wanted.name, one.name, one.server_default, existing_type=one.type, **db_name
                )
                yield Difference(
                    f"default of {what}", default or MISSING, wanted_default or "none", self._altered(set_default)
                )
        for name, found in real.items():
            if name not in wanted.columns and not found["nullable"] and found["default"] is None:
                allow = ColumnNullable(
                    wanted.name, name, nullable=True, existing_type=found["type"], schema=self._schema
                )
                yield Difference(
                    f"column {name} of {wanted.name}", "NOT NULL without a default", "absent", self._altered(allow)
                )

    def _constraints(self, wanted: Table) -> Iterator[Difference]:
        key = self._real.get_pk_constraint(wanted.name, schema=self._schema)
        found, expected = ", ".join(key["constrained_columns"]), ", ".join(wanted.primary_key.columns.keys())
        if found != expected:
            mend = self._altered(
                *([DropConstraint(wanted.primary_key)] if found else []),
                AddConstraint(wanted.primary_key, isolate_from_table=False),
            )
            yield Difference(f"primary key of {wanted.name}", found or MISSING, expected, mend)
        checks = {
            each["name"]: each["sqltext"] for each in self._real.get_check_constraints(wanted.name, schema=self._schema)
        }
        for one in wanted.constraints:
            if isinstance(one, CheckConstraint):
                is_now, expected = checks.get(str(one.name)), str(one.sqltext)
                if is_now is None or _plain(is_now) != _plain(expected):
                    mend = self._altered(
                        *([DropConstraint(one)] if is_now else []), AddConstraint(one, isolate_from_table=False)
                    )
                    yield Difference(f"check {one.name} of {wanted.name}", is_now or MISSING, expected, mend)

    def _index_definitions(self, table_name: str) -> dict[str, str]:
        """By name: what comes after the table's name in CREATE INDEX."""
        if self._schema is None:
            master = table("sqlite_master", column("name"), column("type"), column("tbl_name"), column("sql"))
            rows = self._connection.execute(
                select(master.c.name, master.c.sql).where(master.c.type == "index", master.c.tbl_name == table_name)
            )
            return {name: _tail(sql) for name, sql in rows if sql}
        classes, indexes = pg_catalog.pg_class, pg_catalog.pg_index
        of = classes.alias("of")
        spaces = pg_catalog.pg_namespace
        definitions = self._connection.execute(
            select(classes.c.relname, func.pg_catalog.pg_get_indexdef(classes.c.oid), indexes.c.indisvalid)
            .join(indexes, indexes.c.indexrelid == classes.c.oid)
            .join(of, of.c.oid == indexes.c.indrelid)
            .join(spaces, spaces.c.oid == of.c.relnamespace)
            .where(of.c.relname == table_name, spaces.c.nspname == self._schema)
        )
        return {
            name: _tail(sql) if valid else "invalid, after a build that broke off" for name, sql, valid in definitions
        }

    def _expected(self, index: Index) -> str:
        return _tail(self._statement(CreateIndex(index)))

    def _type(self, kind: Any) -> str:
        written = str(kind.compile(dialect=self._connection.dialect))
        return {"FLOAT": "DOUBLE PRECISION"}.get(written, written) if self._schema else written

    def _statement(self, ddl: ExecutableDDLElement) -> str:
        return " ".join(str(ddl.compile(dialect=self._connection.dialect)).split())

    def _statements(self, *ddl: ExecutableDDLElement) -> str:
        return "\n".join(f"{self._statement(each)};" for each in ddl)

    def _altered(self, *ddl: ExecutableDDLElement) -> str:
        if self._schema is None:
            return "-- SQLite cannot change this: export, import into a new file, and put that in the place of this one"
        return self._statements(*ddl)


def _tail(create_index: str) -> str:
    unique = "UNIQUE " if "UNIQUE INDEX" in create_index.upper() else ""
    return unique + re.sub(r"^.*? ON \S+ (USING btree )?", "", " ".join(create_index.split()), flags=re.IGNORECASE)


def _default(one: Column[Any]) -> str | None:
    """What gives the column its value where no statement does."""
    match one.server_default:
        case None:
            return None
        case Identity():
            return _IDENTITY
        case Computed(sqltext=sql):
            return f"{_COMPUTED} {sql}"
    value = one.server_default.arg  # type: ignore[attr-defined]
    return f"'{value}'" if isinstance(value, str) else str(value)


def _found_default(found: Mapping[str, Any]) -> str | None:
    if found.get("identity"):
        return _IDENTITY
    computed = found.get("computed")
    return f"{_COMPUTED} {computed['sqltext']}" if computed else found["default"]


_IDENTITY, _COMPUTED = "generated as identity", "generated from"


def _plain(sql: str) -> str:
    """Without what makes no difference: casts, parentheses, quotes of names, spaces."""
    without_casts = re.sub(r"::(double precision|\w+)", "", sql, flags=re.IGNORECASE)
    return re.sub(r'[()"\s]', "", without_casts).lower()
