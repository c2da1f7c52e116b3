"""The table of entries."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Float, Index, MetaData, Table, Text, text

from firefly_memory.databases.sql.schema.columns import GUARDED, Columns


def define(tables: MetaData, columns: Columns) -> None:
    entries = Table(
        "memory_entries",
        tables,
        Column("entry_id", Text, primary_key=True),
        Column("namespace", Text, nullable=False),
        Column("scope", Text, nullable=False),
        Column("key", Text),
        columns.document("content", nullable=False),
        columns.document("metadata", nullable=False, server_default="{}"),
        columns.instant("created_at", nullable=False, server_default=text(columns.now)),
        columns.instant("expires_at"),
        Column("importance", Float, nullable=False, server_default=text("0.5")),
        CheckConstraint("importance >= 0.0 AND importance <= 1.0", name="memory_entries_importance_check"),
        info=GUARDED,
    )
    c = entries.c
    keyed = columns.only(c.key.is_not(None))
    Index("idx_namespace", c.namespace)
    Index("idx_namespace_key", c.namespace, c.key, **keyed)
    Index("idx_expires_at", c.expires_at, **columns.only(c.expires_at.is_not(None)))
    # Beyond the documents, for rule R11: a page of a namespace, and the newest entry of a key, each from one columns.
    Index(
        "idx_namespace_order",
        c.namespace,
        c.created_at,
        c.entry_id,
        **columns.by_code_point("namespace", "entry_id"),
    )
    Index(
        "idx_namespace_key_order",
        c.namespace,
        c.key,
        c.created_at,
        c.entry_id,
        **keyed,
        **columns.by_code_point("namespace", "key", "entry_id"),
    )
