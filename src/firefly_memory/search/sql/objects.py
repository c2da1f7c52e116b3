"""What Alembic does not see of an index: SQLite's full-text table and its triggers."""

from __future__ import annotations

from firefly_memory.databases.sql.schema.objects import SchemaObject
from firefly_memory.search.index import Subject


def index_objects(subject: Subject) -> list[SchemaObject]:
    """The full-text table of a subject, which keeps no text of its own, and the triggers that keep it in step."""
    table, words = subject.table, subject.words
    into = f"INSERT INTO {words}"
    removed = f"{into} ({words}, rowid, words) VALUES ('delete', old.number, old.words);"
    added = f"{into} (rowid, words) VALUES (new.number, new.words);"
    triggers = {
        "added": f"AFTER INSERT ON {table} BEGIN {added} END",
        "removed": f"AFTER DELETE ON {table} BEGIN {removed} END",
        "changed": f"AFTER UPDATE OF words ON {table} BEGIN {removed} {added} END",
    }
    # Every character but ASCII's spaces and signs is a part of a word; no positions and no lengths are kept.
    options = f"content='{table}', content_rowid='number', tokenize=\"ascii tokenchars '_'\", detail=none, columnsize=0"
    return [
        SchemaObject(
            kind="table",
            name=words,
            dialect="sqlite",
            create=f"CREATE VIRTUAL TABLE {words} USING fts5(words, {options})",
            drop=f"DROP TABLE {words}",
            tables=(words, *(f"{words}_{part}" for part in ("data", "idx", "config"))),
        ),
        *(
            SchemaObject(
                kind="trigger",
                name=f"{words}_{name}",
                dialect="sqlite",
                create=f"CREATE TRIGGER {words}_{name} {does}",
                drop=f"DROP TRIGGER {words}_{name}",
                table=table,
            )
            for name, does in triggers.items()
        ),
    ]
