"""The table of tombstones."""

from __future__ import annotations

from sqlalchemy import Column, Index, MetaData, Table, Text

from firefly_memory.databases.sql.schema.columns import ROWS_OF_ITS_REVISION, Columns


def define(tables: MetaData, columns: Columns) -> None:
    tombstones = Table(
        "memory_tombstones",
        tables,
        # A hash, or the word "key".
        Column("id", Text, primary_key=True),
        # The tombstone of the person to whom what was erased belonged.
        Column("owner", Text),
        # Only of the key.
        Column("secret", Text),
        columns.instant("created_at", nullable=False),
        info={ROWS_OF_ITS_REVISION: 1},  # the key
    )
    Index("idx_tombstones_owner", tombstones.c.owner, **columns.only(tombstones.c.owner.is_not(None)))
