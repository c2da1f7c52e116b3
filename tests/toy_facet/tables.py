"""The table of the notes, and what Alembic does not see beside it: an index of their words, and its triggers."""

from __future__ import annotations

from functools import partial
from typing import Any

from sqlalchemy import Column, Index, MetaData, Table, Text

from firefly_memory.databases.sql.schema.columns import GUARDED, Columns, PostgreSQLColumns
from firefly_memory.databases.sql.schema.objects import SchemaObject, statement
from tests.toy_facet.numbered import numbered


def _define(number: int, tables: MetaData, columns: Columns) -> None:
    on_postgresql = isinstance(columns, PostgreSQLColumns)
    extra: list[Column[Any]] = []
    if on_postgresql:
        from sqlalchemy.dialects.postgresql import TSVECTOR

        extra = [Column("words", TSVECTOR())]
    notes = Table(
        f"toy_{number}_notes",
        tables,
        columns.growing_key("number"),
        Column("note_id", Text, nullable=False),
        Column("body", Text, nullable=False),
        columns.instant("expires_at"),
        Column("owner", Text),
        *extra,
        info=GUARDED,
    )
    Index(f"idx_toy_{number}_note", notes.c.note_id, unique=True)
    Index(f"idx_toy_{number}_owner", notes.c.owner, notes.c.note_id)


def _objects(number: int) -> list[SchemaObject]:
    notes, words = f"toy_{number}_notes", f"toy_{number}_words"
    removed = f"INSERT INTO {words} ({words}, rowid, body) VALUES ('delete', old.number, old.body);"
    added = f"INSERT INTO {words} (rowid, body) VALUES (new.number, new.body);"
    triggers = {
        f"{words}_added": f"AFTER INSERT ON {notes} BEGIN {added} END",
        f"{words}_removed": f"AFTER DELETE ON {notes} BEGIN {removed} END",
        f"{words}_changed": f"AFTER UPDATE OF body ON {notes} BEGIN {removed} {added} END",
    }
    of_words = [words, *(f"{words}_{part}" for part in ("data", "idx", "docsize", "config"))]
    on_sqlite = [
        SchemaObject(
            kind="table",
            name=words,
            dialect="sqlite",
            create=f"CREATE VIRTUAL TABLE {words} USING fts5(body, content='{notes}', content_rowid='number')",
            drop=f"DROP TABLE {words}",
            tables=tuple(of_words),
        ),
        *(
            SchemaObject("trigger", name, "sqlite", f"CREATE TRIGGER {name} {does}", f"DROP TRIGGER {name}", notes)
            for name, does in triggers.items()
        ),
    ]
    function = f"{{schema}}.{words}_of_body"
    assigns = "NEW.words := pg_catalog.to_tsvector('pg_catalog.simple'::pg_catalog.regconfig, NEW.body); RETURN NEW;"
    on_postgresql = [
        SchemaObject(
            kind="function",
            name=f"{words}_of_body",
            dialect="postgresql",
            create=f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {assigns} END$$",
            drop=f"DROP FUNCTION {function}()",
        ),
        SchemaObject(
            kind="trigger",
            name=words,
            dialect="postgresql",
            create=f"CREATE TRIGGER {words} BEFORE INSERT OR UPDATE ON {{schema}}.{notes} "
            f"FOR EACH ROW EXECUTE FUNCTION {function}()",
            drop=f"DROP TRIGGER {words} ON {{schema}}.{notes}",
            table=notes,
        ),
    ]
    return [*on_sqlite, *on_postgresql]


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
