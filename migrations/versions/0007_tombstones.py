"""Tombstones: what refuses the data of people who were erased, and the random key of this database.

Everything is only added, so a version that needs 0005 goes on working. It refuses nothing, though: erase nobody as
long as such a version writes to the database.

Revision ID: 0007_0005
Revises: 0006_0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from firefly_memory.databases.sql.schema.alembic_env import target_schema

revision = "0007_0005"
down_revision = "0006_0005"
branch_labels = None
depends_on = None

_TABLE = "memory_tombstones"


def upgrade() -> None:
    schema = target_schema()
    tombstones = op.create_table(
        _TABLE,
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("owner", sa.Text()),
        sa.Column("secret", sa.Text()),
        sa.Column("created_at", sa.Text() if schema is None else sa.DateTime(timezone=True), nullable=False),
        schema=schema,
    )
    has_owner = sa.text("owner IS NOT NULL")
    op.create_index(
        "idx_tombstones_owner", _TABLE, ["owner"], schema=schema, postgresql_where=has_owner, sqlite_where=has_owner
    )
    # Made by the database, so that a script of this revision has no key in it.
    if schema is None:
        secret, now = "lower(hex(randomblob(32)))", "strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')"
    else:
        secret, now = "gen_random_uuid()::text || gen_random_uuid()::text", "now()"
    key = {"id": "key", "secret": sa.literal_column(secret), "created_at": sa.literal_column(now)}
    op.execute(tombstones.insert().values(key))


def downgrade() -> None:
    op.drop_table(_TABLE, schema=target_schema())
