"""Feeds: the messages of agents.

Everything is only added, so a version that needs 0005 goes on working.

Revision ID: 0010_0005
Revises: 0009_0005
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from firefly_memory.databases.sql.schema.alembic_env import target_schema

revision = "0010_0005"
down_revision = "0009_0005"
branch_labels = None
depends_on = None

_FEEDS = "memory_feeds"
_MESSAGES = "memory_feed_messages"


def upgrade() -> None:
    schema = target_schema()
    on_sqlite = schema is None
    instant = sa.Text() if on_sqlite else sa.DateTime(timezone=True)
    document = sa.Text() if on_sqlite else JSONB()
    by_code_point = {"location": 'COLLATE "C"'}
    op.create_table(
        _FEEDS,
        sa.Column("location", sa.Text(), primary_key=True),
        sa.Column("newest", sa.BigInteger(), nullable=False),
        sa.Column("dropped", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("created_at", instant, nullable=False),
        sa.Column("updated_at", instant, nullable=False),
        schema=schema,
    )
    op.create_index("idx_feeds_location", _FEEDS, ["location"], schema=schema, postgresql_ops=by_code_point)
    op.create_index(
        "idx_feeds_owner",
        _FEEDS,
        ["owner", "location"],
        schema=schema,
        postgresql_ops=by_code_point,
        **_only("owner IS NOT NULL"),
    )
    op.create_table(
        _MESSAGES,
        sa.Column("location", sa.Text(), primary_key=True),
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("agent_key", sa.Text()),
        sa.Column("is_conversation", sa.Boolean(), nullable=False),
        sa.Column("is_global", sa.Boolean(), nullable=False),
        sa.Column("message", document, nullable=False),
        sa.Column("append_id", sa.Text(), nullable=False),
        sa.Column("created_at", instant, nullable=False),
        schema=schema,
    )
    is_true = "IS 1" if on_sqlite else "IS true"
    for kind in ("conversation", "global"):
        op.create_index(
            f"idx_feed_messages_{kind}",
            _MESSAGES,
            ["location", "number"],
            schema=schema,
            **_only(f"is_{kind} {is_true}"),
        )
    op.create_index(
        "idx_feed_messages_agent",
        _MESSAGES,
        ["location", "agent_key", "number"],
        schema=schema,
        **_only("agent_key IS NOT NULL"),
    )


def _only(condition: str) -> dict[str, Any]:
    return {"postgresql_where": sa.text(condition), "sqlite_where": sa.text(condition)}


def downgrade() -> None:
    schema = target_schema()
    op.drop_table(_MESSAGES, schema=schema)
    op.drop_table(_FEEDS, schema=schema)
