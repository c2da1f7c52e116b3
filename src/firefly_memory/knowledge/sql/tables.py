"""The tables of chunks."""

from __future__ import annotations

from sqlalchemy import Column, Index, MetaData, Table, Text

from firefly_memory.databases.sql.schema.columns import GUARDED, Columns
from firefly_memory.knowledge.log import CHUNKS
from firefly_memory.search.sql.tables import define_index, define_languages, index_columns


def define(tables: MetaData, columns: Columns) -> None:
    chunks = Table(
        CHUNKS.table,
        tables,
        columns.growing_key("number"),
        Column("id", Text, nullable=False),
        # The tenant; empty without one.
        Column("space", Text, nullable=False),
        Column("collection", Text, nullable=False),
        # The person whose data it is.
        Column("owner", Text),
        # JSON text.
        Column("source", Text),
        Column("text", Text, nullable=False),
        # A date or an instant, as ISO 8601 writes it.
        Column("said_at", Text),
        columns.instant("created_at", nullable=False),
        *index_columns(columns),
        info=GUARDED,
    )
    c = chunks.c
    by_id = columns.by_code_point("id")
    Index("idx_chunks_id", c.id, unique=True, **by_id)
    by_name = columns.by_code_point("collection", "id")
    Index("idx_chunks_collection", c.space, c.collection, c.created_at, c.id, **by_name)
    Index("idx_chunks_owner", c.owner, c.id, **{**by_id, **columns.only(c.owner.is_not(None))})
    define_index(chunks, columns, CHUNKS)
    define_languages(tables)
