"""The memory entries: one table, with the indexes that keys, expiry and order need.

Written out in full rather than taken from ``firefly_memory.schema``, which moves on while this stays. Two indexes go
beyond the documented ones: ``idx_namespace_order`` serves a page of a namespace and ``idx_namespace_key_order`` the
newest entry of a key, each from one place, however many entries the namespace or the key has. They compare text by
code point, so that the order does not depend on the collation of the database.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from firefly_memory.databases.sql.schema.alembic_env import target_schema

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BY_CODE_POINT = 'COLLATE "C"'


def upgrade() -> None:
    schema = target_schema()
    on_sqlite = op.get_context().dialect.name == "sqlite"
    document = sa.Text() if on_sqlite else JSONB()
    instant = sa.Text() if on_sqlite else sa.DateTime(timezone=True)
    now = "(strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))" if on_sqlite else "now()"
    op.create_table(
        "memory_entries",
        sa.Column("entry_id", sa.Text(), primary_key=True, nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("key", sa.Text()),
        sa.Column("content", document, nullable=False),
        sa.Column("metadata", document, nullable=False, server_default="{}"),
        sa.Column("created_at", instant, nullable=False, server_default=sa.text(now)),
        sa.Column("expires_at", instant),
        sa.Column("importance", sa.Float(), nullable=False, server_default=sa.text("0.5")),
        sa.CheckConstraint("importance >= 0.0 AND importance <= 1.0", name="memory_entries_importance_check"),
        schema=schema,
    )
    keyed = sa.text('"key" IS NOT NULL')
    expiring = sa.text("expires_at IS NOT NULL")
    op.create_index("idx_namespace", "memory_entries", ["namespace"], schema=schema)
    op.create_index(
        "idx_namespace_key",
        "memory_entries",
        ["namespace", "key"],
        schema=schema,
        postgresql_where=keyed,
        sqlite_where=keyed,
    )
    op.create_index(
        "idx_expires_at",
        "memory_entries",
        ["expires_at"],
        schema=schema,
        postgresql_where=expiring,
        sqlite_where=expiring,
    )
    op.create_index(
        "idx_namespace_order",
        "memory_entries",
        ["namespace", "created_at", "entry_id"],
        schema=schema,
        postgresql_ops={"namespace": BY_CODE_POINT, "entry_id": BY_CODE_POINT},
    )
    op.create_index(
        "idx_namespace_key_order",
        "memory_entries",
        ["namespace", "key", "created_at", "entry_id"],
        schema=schema,
        postgresql_where=keyed,
        sqlite_where=keyed,
        postgresql_ops={"namespace": BY_CODE_POINT, "key": BY_CODE_POINT, "entry_id": BY_CODE_POINT},
    )


def downgrade() -> None:
    op.drop_table("memory_entries", schema=target_schema())
