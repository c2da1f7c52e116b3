"""The table of the notes, those of their vectors, and what Alembic does not see beside them."""

from __future__ import annotations

from functools import partial
from typing import Any

from sqlalchemy import Column, Index, MetaData, Table, Text

from firefly_memory.databases.sql.schema.columns import GUARDED, Columns
from firefly_memory.databases.sql.schema.objects import SchemaObject, statement
from firefly_memory.search.sql.objects import index_objects
from firefly_memory.search.sql.tables import define_index, index_columns
from tests.toy_facet.log import subject
from tests.toy_facet.numbered import numbered


def _define(number: int, tables: MetaData, columns: Columns) -> None:
    notes = Table(
        subject(number).table,
        tables,
        columns.growing_key("number"),
        Column("id", Text, nullable=False),
        Column("body", Text, nullable=False),
        columns.instant("expires_at"),
        Column("owner", Text),
        *index_columns(columns),
        info=GUARDED,
    )
    by_id = columns.by_code_point("id")
    Index(f"idx_toy_{number}_note", notes.c.id, unique=True, **by_id)
    Index(f"idx_toy_{number}_owner", notes.c.owner, notes.c.id, **by_id)
    define_index(notes, columns, subject(number))


def _objects(number: int) -> list[SchemaObject]:
    """Those of the index, which has none on PostgreSQL, and a trigger of the toy's own there."""
    notes = subject(number).table
    trigger = f"{notes}_keep_ids"
    function = f"{{schema}}.{trigger}"
    refuses = "IF NEW.id <> OLD.id THEN RAISE EXCEPTION 'a note keeps its id'; END IF; RETURN NEW;"
    own = [
        SchemaObject(
            kind="function",
            name=trigger,
            dialect="postgresql",
            create=f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {refuses} END$$",
            drop=f"DROP FUNCTION {function}()",
        ),
        SchemaObject(
            kind="trigger",
            name=trigger,
            dialect="postgresql",
            create=f"CREATE TRIGGER {trigger} BEFORE UPDATE ON {{schema}}.{notes} "
            f"FOR EACH ROW EXECUTE FUNCTION {function}()",
            drop=f"DROP TRIGGER {trigger} ON {{schema}}.{notes}",
            table=notes,
        ),
    ]
    return [*index_objects(subject(number)), *own]


def objects(number: int, schema_name: str | None) -> list[SchemaObject]:
    """For the revision: those of one dialect, their SQL for one schema."""
    dialect = "sqlite" if schema_name is None else "postgresql"
    return [
        SchemaObject(
            each.kind, each.name, dialect, statement(each.create, schema_name), statement(each.drop, schema_name)
        )
        for each in _objects(number)
        if each.dialect == dialect
    ]


def __getattr__(name: str) -> Any:
    return numbered(name, {"define": lambda number: partial(_define, number), "objects": _objects})
