"""Dialogues: what pydantic-ai's ``ConversationStore`` keeps, a row for each conversation and one for each message.

An entry points at the one before it, and any number of dialogues share it. ``holders`` counts who needs it, so that a
deletion goes up from the ends of a dialogue and stops where somebody else goes on; ``idx_dialogue_entries_released``
has the few that nobody needs any more. ``idx_dialogues_order`` and ``idx_dialogues_scope_order`` serve the lists,
newest first. No foreign key: it would cost every message a lookup, and nothing but the library writes here.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from firefly_memory.databases.sql.schema.alembic_env import target_schema

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    schema = target_schema()
    on_sqlite = op.get_context().dialect.name == "sqlite"
    instant = sa.Text() if on_sqlite else sa.DateTime(timezone=True)
    op.create_table(
        "memory_dialogues",
        sa.Column("conversation_id", sa.Text(), primary_key=True, nullable=False),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.Column("head_id", sa.Text()),
        sa.Column("scope", sa.Text()),
        sa.Column("forked_from", sa.Text()),
        sa.Column("forked_at", sa.Text()),
        sa.Column("branches", sa.Text(), nullable=False),
        sa.Column("usage", sa.Text(), nullable=False),
        sa.Column("deferred_tool_requests", sa.Text()),
        sa.Column("updated_at", instant, nullable=False),
        sa.Column("format_version", sa.BigInteger(), nullable=False),
        schema=schema,
    )
    op.create_index("idx_dialogues_order", "memory_dialogues", ["updated_at"], schema=schema)
    op.create_index("idx_dialogues_scope_order", "memory_dialogues", ["scope", "updated_at"], schema=schema)
    op.create_table(
        "memory_dialogue_entries",
        sa.Column("entry_id", sa.Text(), primary_key=True, nullable=False),
        sa.Column("parent_id", sa.Text()),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("holders", sa.BigInteger(), nullable=False),
        schema=schema,
    )
    released = sa.text("holders = 0")
    op.create_index(
        "idx_dialogue_entries_released",
        "memory_dialogue_entries",
        ["entry_id"],
        schema=schema,
        postgresql_where=released,
        sqlite_where=released,
    )


def downgrade() -> None:
    schema = target_schema()
    op.drop_table("memory_dialogue_entries", schema=schema)
    op.drop_table("memory_dialogues", schema=schema)
