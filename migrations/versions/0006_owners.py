"""Owners: the person whose conversation it is, and the lists of conversations.

Conversations that are there have no owner. ``idx_conversations_activity`` serves the list by the newest turn; two more
indexes, of conversations with an owner, serve the lists of an owner in both orders. Everything is only added, so a
version that needs 0005 goes on working.

Revision ID: 0006_0005
Revises: 0005
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from firefly_memory.databases.sql.schema.alembic_env import target_schema

revision = "0006_0005"
down_revision = "0005"
branch_labels = None
depends_on = None

_TABLE = "memory_conversations"

_INDEXES = {
    "idx_conversations_activity": ["updated_at", "conversation_id"],
    "idx_conversations_owner_order": ["owner", "created_at", "conversation_id"],
    "idx_conversations_owner_activity": ["owner", "updated_at", "conversation_id"],
}


def upgrade() -> None:
    schema = target_schema()
    op.add_column(_TABLE, sa.Column("owner", sa.Text()), schema=schema)
    has_owner = sa.text("owner IS NOT NULL")
    for name, columns in _INDEXES.items():
        options: dict[str, Any] = {"postgresql_ops": {"conversation_id": 'COLLATE "C"'}}
        if "owner" in columns:
            options |= {"postgresql_where": has_owner, "sqlite_where": has_owner}
        op.create_index(name, _TABLE, [*columns], schema=schema, **options)


def downgrade() -> None:
    for name in _INDEXES:
        op.drop_index(name, _TABLE, schema=target_schema())
    op.drop_column(_TABLE, "owner", schema=target_schema())
