"""What Alembic does not see: full-text tables, triggers, functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, column, func, select, table
from sqlalchemy.dialects.postgresql import pg_catalog

from firefly_memory.databases.diagnostics import MISSING, Difference
from firefly_memory.facets import all_facets


@dataclass(frozen=True, slots=True)
class SchemaObject:
    """One object on one dialect. In its SQL ``{schema}`` stands for the quoted schema of PostgreSQL."""

    kind: str
    """``table``, ``trigger`` or ``function``, as the database calls it."""
    name: str
    dialect: str
    """``sqlite`` or ``postgresql``."""
    create: str
    drop: str
    table: str | None = None
    """Of a trigger: the table it is on."""
    tables: tuple[str, ...] = ()
    """The tables that it makes: a full-text table brings some of its own."""


def registered_objects(dialect: str) -> list[SchemaObject]:
    """Those of every facet, in the order in which they are made."""
    objects = [each for facet in all_facets() for each in facet.stored("objects") or ()]
    return [each for each in objects if each.dialect == dialect]


def tables_of_objects() -> set[str]:
    """The tables that are in no ``MetaData``."""
    objects = [*registered_objects("sqlite"), *registered_objects("postgresql")]
    return {name for each in objects for name in each.tables}


def object_differences(connection: Connection, schema_name: str | None) -> Iterator[Difference]:
    """Every object that is missing, or other than its facet declares it."""
    dialect = connection.dialect.name
    for wanted in registered_objects(dialect):
        expected = statement(wanted.create, schema_name)
        found = _found(connection, wanted, schema_name)
        if found is None or (dialect == "sqlite" and _plain(found) != _plain(expected)):
            drop = [] if found is None else [f"{statement(wanted.drop, schema_name)};"]
            yield Difference(
                f"{wanted.kind} {wanted.name}", found or MISSING, expected, "\n".join([*drop, f"{expected};"])
            )


def statement(sql: str, schema_name: str | None) -> str:
    """The SQL of an object in a schema."""
    if schema_name is None:
        return sql
    from firefly_memory.databases.sql.postgresql.identifiers import quoted

    return sql.replace("{schema}", quoted(schema_name))


def _found(connection: Connection, wanted: SchemaObject, schema_name: str | None) -> str | None:
    """Its definition in the database; on PostgreSQL only whether it is there, and switched on."""
    if schema_name is None:
        master = table("sqlite_master", column("name"), column("type"), column("sql"))
        found = select(master.c.sql).where(master.c.type == wanted.kind, master.c.name == wanted.name)
        return connection.execute(found).scalar_one_or_none()
    spaces, classes = pg_catalog.pg_namespace, pg_catalog.pg_class
    if wanted.kind == "function":
        functions = table("pg_proc", column("proname"), column("pronamespace"), schema="pg_catalog")
        there = (
            select(functions.c.proname)
            .join(spaces, spaces.c.oid == functions.c.pronamespace)
            .where(functions.c.proname == wanted.name, spaces.c.nspname == schema_name)
        )
    elif wanted.kind == "trigger":
        triggers = table("pg_trigger", *map(column, ("tgname", "tgrelid", "tgenabled")), schema="pg_catalog")
        there = (
            select(triggers.c.tgname)
            .join(classes, classes.c.oid == triggers.c.tgrelid)
            .join(spaces, spaces.c.oid == classes.c.relnamespace)
            .where(triggers.c.tgname == wanted.name, classes.c.relname == wanted.table)
            .where(spaces.c.nspname == schema_name, triggers.c.tgenabled != "D")
        )
    else:
        there = (
            select(classes.c.relname)
            .join(spaces, spaces.c.oid == classes.c.relnamespace)
            .where(classes.c.relname == wanted.name, spaces.c.nspname == schema_name)
        )
    return connection.execute(select(func.pg_catalog.min(there.subquery().c[0]))).scalar_one_or_none()


def _plain(sql: str) -> str:
    """Without what makes no difference: quotes, spaces, the case of words."""
    return re.sub(r'["\s]|if not exists', "", sql, flags=re.IGNORECASE).lower().removesuffix(";")
