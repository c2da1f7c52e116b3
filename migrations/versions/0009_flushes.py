"""Flushes: by which turns leave the window of a conversation, and come back.

Summaries that are there have no flush: their turns stay as they are. Everything is only added, so a version that needs
0005 goes on working. It does not record the flushes that it makes.

Revision ID: 0009_0005
Revises: 0008_0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from firefly_memory.databases.sql.schema.alembic_env import target_schema

revision = "0009_0005"
down_revision = "0008_0005"
branch_labels = None
depends_on = None

_CONVERSATIONS = "memory_conversations"
_TURNS = "memory_turns"
_FLUSHES = "memory_flushes"
_ADDED = ("dropped_turns", "flush_id", "marks")


def upgrade() -> None:
    schema = target_schema()
    none_dropped = sa.text("0")
    dropped = sa.Column("dropped_turns", sa.BigInteger(), nullable=False, server_default=none_dropped)
    op.add_column(_CONVERSATIONS, dropped, schema=schema)
    op.add_column(_CONVERSATIONS, sa.Column("flush_id", sa.Text()), schema=schema)
    op.add_column(_CONVERSATIONS, sa.Column("marks", sa.Text()), schema=schema)
    op.add_column(_TURNS, sa.Column("input_tokens", sa.BigInteger()), schema=schema)
    op.create_table(
        _FLUSHES,
        sa.Column("conversation_id", sa.Text(), primary_key=True),
        sa.Column("flush_id", sa.Text(), primary_key=True),
        sa.Column("previous", sa.Text()),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("turns_before", sa.BigInteger(), nullable=False),
        sa.Column("tokens_before", sa.BigInteger(), nullable=False),
        sa.Column("summary_before", sa.Text()),
        sa.Column("created_at", sa.Text() if schema is None else sa.DateTime(timezone=True), nullable=False),
        schema=schema,
    )


def downgrade() -> None:
    schema = target_schema()
    op.drop_table(_FLUSHES, schema=schema)
    op.drop_column(_TURNS, "input_tokens", schema=schema)
    for name in reversed(_ADDED):
        op.drop_column(_CONVERSATIONS, name, schema=schema)
