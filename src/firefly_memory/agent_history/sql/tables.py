"""The tables of pydantic-ai's conversations and of their messages."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, MetaData, Table, Text, literal_column

from firefly_memory.databases.sql.schema.columns import GUARDED, Columns


def define(tables: MetaData, columns: Columns) -> None:
    records = Table(
        "memory_agent_history",
        tables,
        Column("conversation_id", Text, primary_key=True),
        Column("revision", Text, nullable=False),
        Column("head_id", Text),
        Column("scope", Text),
        Column("forked_from", Text),
        Column("forked_at", Text),
        # JSON text, like the two after it: a list of entries.
        Column("branches", Text, nullable=False),
        Column("usage", Text, nullable=False),
        Column("deferred_tool_requests", Text),
        columns.instant("updated_at", nullable=False),
        Column("format_version", BigInteger, nullable=False),
        info=GUARDED,
    )
    Index("idx_agent_history_order", records.c.updated_at)
    Index("idx_agent_history_scope_order", records.c.scope, records.c.updated_at)
    entries = Table(
        "memory_agent_history_entries",
        tables,
        Column("entry_id", Text, primary_key=True),
        Column("parent_id", Text),
        Column("kind", Text, nullable=False),
        # JSON text as pydantic-ai writes it.
        Column("message", Text, nullable=False),
        # How many entries come right after this one, and of how many records it is the head or the end of a branch.
        Column("holders", BigInteger, nullable=False),
    )
    # Entries without holders: a few rows at most, which the next deletion removes.
    released = columns.only(entries.c.holders == literal_column("0"))
    Index("idx_agent_history_entries_released", entries.c.entry_id, **released)
