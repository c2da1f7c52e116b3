"""Every table, index and check, once, for SQLite and PostgreSQL.

The Alembic revisions in ``migrations/`` produce exactly this (a test compares them), statements are built from it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import CheckConstraint, Column, DateTime, Float, Index, MetaData, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

REVISIONS = ("0001",)
"""Every revision this version of the library knows, oldest first. A test keeps it in step with ``migrations/``."""

HEAD = REVISIONS[-1]
"""The revision this version of the library needs."""

VERSION_TABLE = "alembic_version"

POSTGRESQL_SCHEMA = "firefly_memory"
"""The PostgreSQL schema everything lives in unless ``schema_name`` says otherwise. SQLite has none."""


class current_instant(FunctionElement[Any]):  # noqa: N801 - SQL functions are written in lower case
    """The database's own clock, in the form instants are stored in."""

    inherit_cache = True


@compiles(current_instant)
def _on_postgresql(element: current_instant, compiler: SQLCompiler, **options: Any) -> str:
    return "now()"


@compiles(current_instant, "sqlite")
def _on_sqlite(element: current_instant, compiler: SQLCompiler, **options: Any) -> str:
    return "(strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))"


# SQLite has neither type. Its text keeps JSON to the letter; a column declared JSON would get numeric affinity there,
# which turns "-0.0" and integers beyond 64 bits into other numbers. ISO 8601 text in UTC sorts by time.
Document = JSONB().with_variant(Text(), "sqlite")
Instant = DateTime(timezone=True).with_variant(Text(), "sqlite")

# Documented columns have the database's own collation, which differs from server to server. Indexes that serve an
# order are built, and their statements written, by code point, so that the order is the same everywhere.
_BY_CODE_POINT = 'COLLATE "C"'

metadata = MetaData()

memory_entries = Table(
    "memory_entries",
    metadata,
    Column("entry_id", Text, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("key", Text),
    Column("content", Document, nullable=False),
    Column("metadata", Document, nullable=False, server_default="{}"),
    Column("created_at", Instant, nullable=False, server_default=current_instant()),
    Column("expires_at", Instant),
    Column("importance", Float, nullable=False, server_default=text("0.5")),
    CheckConstraint("importance >= 0.0 AND importance <= 1.0", name="memory_entries_importance_check"),
)

Index("idx_namespace", memory_entries.c.namespace)
Index(
    "idx_namespace_key",
    memory_entries.c.namespace,
    memory_entries.c.key,
    postgresql_where=memory_entries.c.key.is_not(None),
    sqlite_where=memory_entries.c.key.is_not(None),
)
Index(
    "idx_expires_at",
    memory_entries.c.expires_at,
    postgresql_where=memory_entries.c.expires_at.is_not(None),
    sqlite_where=memory_entries.c.expires_at.is_not(None),
)
# Beyond the documents, for rule R11: a page of a namespace, and the newest entry of a key, each read from one place.
Index(
    "idx_namespace_order",
    memory_entries.c.namespace,
    memory_entries.c.created_at,
    memory_entries.c.entry_id,
    postgresql_ops={"namespace": _BY_CODE_POINT, "entry_id": _BY_CODE_POINT},
)
Index(
    "idx_namespace_key_order",
    memory_entries.c.namespace,
    memory_entries.c.key,
    memory_entries.c.created_at,
    memory_entries.c.entry_id,
    postgresql_where=memory_entries.c.key.is_not(None),
    sqlite_where=memory_entries.c.key.is_not(None),
    postgresql_ops={"namespace": _BY_CODE_POINT, "key": _BY_CODE_POINT, "entry_id": _BY_CODE_POINT},
)


@cache
def metadata_in(schema: str | None) -> MetaData:
    """All tables, in a PostgreSQL schema, or in none (SQLite)."""
    if schema is None:
        return metadata
    copy = MetaData()
    for table in metadata.sorted_tables:
        table.to_metadata(copy, schema=schema)
    return copy
