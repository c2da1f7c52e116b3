"""Knowledge: chunks of text with what they are found by, their vectors, and the language of their words.

Everything is only added, so a version that needs 0005 goes on working.

Revision ID: 0008_0005
Revises: 0007_0005
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from firefly_memory.databases.sql.schema.alembic_env import target_schema

revision = "0008_0005"
down_revision = "0007_0005"
branch_labels = None
depends_on = None

_CHUNKS = "memory_chunks"
_WORDS = "memory_chunks_words"
_INTO_WORDS = f"INSERT INTO {_WORDS}"
_REMOVED = f"{_INTO_WORDS} ({_WORDS}, rowid, words) VALUES ('delete', old.number, old.words);"
_ADDED = f"{_INTO_WORDS} (rowid, words) VALUES (new.number, new.words);"

_FULL_TEXT = (
    f"CREATE VIRTUAL TABLE {_WORDS} USING fts5(words, content='{_CHUNKS}', content_rowid='number', "
    "tokenize=\"ascii tokenchars '_'\", detail=none, columnsize=0)"
)
_TRIGGERS = {
    "added": f"AFTER INSERT ON {_CHUNKS} BEGIN {_ADDED} END",
    "removed": f"AFTER DELETE ON {_CHUNKS} BEGIN {_REMOVED} END",
    "changed": f"AFTER UPDATE OF words ON {_CHUNKS} BEGIN {_REMOVED} {_ADDED} END",
}


def upgrade() -> None:
    schema = target_schema()
    on_sqlite = schema is None
    instant = sa.Text() if on_sqlite else sa.DateTime(timezone=True)
    by_code_point: dict[str, Any] = {"id": 'COLLATE "C"'}
    op.create_table(
        _CHUNKS,
        sa.Column("number", *([sa.Integer()] if on_sqlite else [sa.BigInteger(), sa.Identity()]), primary_key=True),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("source", sa.Text()),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("said_at", sa.Text()),
        sa.Column("created_at", instant, nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("who", sa.Text()),
        sa.Column("group_id", sa.Text()),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("searchable", sa.Text(), nullable=False),
        sa.Column("words", sa.Text() if on_sqlite else sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("newest", instant, nullable=False),
        schema=schema,
    )
    op.create_index("idx_chunks_id", _CHUNKS, ["id"], unique=True, schema=schema, postgresql_ops=by_code_point)
    op.create_index(
        "idx_chunks_collection",
        _CHUNKS,
        ["space", "collection", "created_at", "id"],
        schema=schema,
        postgresql_ops={"collection": 'COLLATE "C"', **by_code_point},
    )
    has_owner = sa.text("owner IS NOT NULL")
    op.create_index(
        "idx_chunks_owner",
        _CHUNKS,
        ["owner", "id"],
        schema=schema,
        postgresql_ops=by_code_point,
        postgresql_where=has_owner,
        sqlite_where=has_owner,
    )
    op.create_index("idx_chunks_scope", _CHUNKS, ["scope", "group_id", "position"], schema=schema)
    if on_sqlite:
        op.execute(_FULL_TEXT)
        for name, does in _TRIGGERS.items():
            op.execute(f"CREATE TRIGGER {_WORDS}_{name} {does}")
    else:
        op.create_index(
            "idx_chunks_words",
            _CHUNKS,
            ["words"],
            schema=schema,
            postgresql_using="gin",
            postgresql_with={"fastupdate": "off"},
        )
    op.create_table(
        "memory_chunks_vectors",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("embedder", sa.Text(), primary_key=True),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        schema=schema,
    )
    op.create_table(
        "memory_chunks_signatures",
        sa.Column("scope", sa.Text(), primary_key=True),
        sa.Column("embedder", sa.Text(), primary_key=True),
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        schema=schema,
    )
    op.create_table(
        "memory_search_indexes",
        sa.Column("subject", sa.Text(), primary_key=True),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("form", sa.BigInteger(), nullable=False),
        schema=schema,
    )


def downgrade() -> None:
    schema = target_schema()
    for name in ("memory_search_indexes", "memory_chunks_signatures", "memory_chunks_vectors"):
        op.drop_table(name, schema=schema)
    if schema is None:
        for name in reversed(_TRIGGERS):
            op.execute(f"DROP TRIGGER {_WORDS}_{name}")
        op.execute(f"DROP TABLE {_WORDS}")
    op.drop_table(_CHUNKS, schema=schema)
