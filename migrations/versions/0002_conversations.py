"""Conversations: a row for each, and a row for each of their turns.

``memory_conversations`` counts; an append takes its number and its running token sum from there, in one statement, so
that any number of writers leave no gap. ``idx_turns_tokens`` finds the newest turns that fit a budget without reading
the others, ``idx_conversations_order`` serves the list of conversations. No foreign key: it would cost every append a
lookup, and nothing but the library writes here.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from firefly_memory.databases.sql.schema.alembic_env import target_schema

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BY_CODE_POINT = 'COLLATE "C"'


def upgrade() -> None:
    schema = target_schema()
    on_sqlite = op.get_context().dialect.name == "sqlite"
    document = sa.Text() if on_sqlite else JSONB()
    instant = sa.Text() if on_sqlite else sa.DateTime(timezone=True)
    op.create_table(
        "memory_conversations",
        sa.Column("conversation_id", sa.Text(), primary_key=True, nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("evicted_turns", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("evicted_tokens", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("summary", sa.Text()),
        sa.Column("claim", sa.Text()),
        sa.Column("claimed_until", instant),
        sa.Column("created_at", instant, nullable=False),
        sa.Column("updated_at", instant, nullable=False),
        schema=schema,
    )
    op.create_index(
        "idx_conversations_order",
        "memory_conversations",
        ["created_at", "conversation_id"],
        schema=schema,
        postgresql_ops={"conversation_id": BY_CODE_POINT},
    )
    op.create_table(
        "memory_turns",
        sa.Column("conversation_id", sa.Text(), primary_key=True, nullable=False),
        sa.Column("turn_id", sa.BigInteger(), primary_key=True, nullable=False, autoincrement=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("tokens_before", sa.BigInteger(), nullable=False),
        sa.Column("user_prompt", sa.Text(), nullable=False),
        sa.Column("assistant_response", sa.Text(), nullable=False),
        sa.Column("messages", sa.Text()),
        sa.Column("messages_format", sa.Text()),
        sa.Column("metadata", document, nullable=False, server_default="{}"),
        sa.Column("idempotency_key", sa.Text()),
        sa.Column("append_id", sa.Text(), nullable=False),
        sa.Column("created_at", instant, nullable=False),
        schema=schema,
    )
    op.create_index("idx_turns_tokens", "memory_turns", ["conversation_id", "tokens_before"], schema=schema)
    keyed = sa.text("idempotency_key IS NOT NULL")
    op.create_index(
        "idx_turns_idempotency",
        "memory_turns",
        ["conversation_id", "idempotency_key"],
        unique=True,
        schema=schema,
        postgresql_where=keyed,
        sqlite_where=keyed,
    )


def downgrade() -> None:
    schema = target_schema()
    op.drop_table("memory_turns", schema=schema)
    op.drop_table("memory_conversations", schema=schema)
