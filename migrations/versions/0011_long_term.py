"""Long-term memory: facts, what they said before, and people.

Everything is only added, so a version that needs 0005 goes on working.

Revision ID: 0011_0005
Revises: 0010_0005
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from firefly_memory.databases.sql.schema.alembic_env import target_schema

revision = "0011_0005"
down_revision = "0010_0005"
branch_labels = None
depends_on = None

_FACTS = "memory_facts"
_VERSIONS = "memory_fact_versions"
_USERS = "memory_users"
_WORDS = "memory_facts_words"
_INTO_WORDS = f"INSERT INTO {_WORDS}"
_REMOVED = f"{_INTO_WORDS} ({_WORDS}, rowid, words) VALUES ('delete', old.number, old.words);"
_ADDED = f"{_INTO_WORDS} (rowid, words) VALUES (new.number, new.words);"

_FULL_TEXT = (
    f"CREATE VIRTUAL TABLE {_WORDS} USING fts5(words, content='{_FACTS}', content_rowid='number', "
    "tokenize=\"ascii tokenchars '_'\", detail=none, columnsize=0)"
)
_TRIGGERS = {
    "added": f"AFTER INSERT ON {_FACTS} BEGIN {_ADDED} END",
    "removed": f"AFTER DELETE ON {_FACTS} BEGIN {_REMOVED} END",
    "changed": f"AFTER UPDATE OF words ON {_FACTS} BEGIN {_REMOVED} {_ADDED} END",
}


def upgrade() -> None:
    _create_facts()
    _create_versions()
    _create_users()


def _create_facts() -> None:
    schema, on_sqlite = target_schema(), _on_sqlite()
    op.create_table(
        _FACTS,
        _growing_key("number"),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("fact_scope", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("fact_type", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("times_confirmed", sa.BigInteger(), nullable=False),
        sa.Column("times_contradicted", sa.BigInteger(), nullable=False),
        sa.Column("source_episode_id", sa.Text()),
        sa.Column("owner", sa.Text()),
        sa.Column("versions", sa.BigInteger(), nullable=False),
        sa.Column("written_by", sa.Text(), nullable=False),
        sa.Column("access_count", sa.BigInteger(), nullable=False),
        sa.Column("last_accessed", _instant()),
        sa.Column("valid_from", _instant(), nullable=False),
        sa.Column("created_at", _instant(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("who", sa.Text()),
        sa.Column("group_id", sa.Text()),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("searchable", sa.Text(), nullable=False),
        sa.Column("words", sa.Text() if on_sqlite else sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("newest", _instant(), nullable=False),
        schema=schema,
    )
    _create_index("idx_facts_id", _FACTS, ["id"], "id", unique=True)
    _create_index("idx_facts_key", _FACTS, ["scope", "key"], unique=True)
    in_order = ["scope", sa.text("confidence DESC"), sa.text("newest DESC"), "id"]
    _create_index("idx_facts_list", _FACTS, in_order, "id")
    _create_index("idx_facts_owner", _FACTS, ["owner", "id"], "id", only="owner IS NOT NULL")
    _create_index("idx_facts_scope", _FACTS, ["scope", "group_id", "position"])
    if on_sqlite:
        op.execute(_FULL_TEXT)
        for name, does in _TRIGGERS.items():
            op.execute(f"CREATE TRIGGER {_WORDS}_{name} {does}")
    else:
        op.create_index(
            "idx_facts_words",
            _FACTS,
            ["words"],
            schema=schema,
            postgresql_using="gin",
            postgresql_with={"fastupdate": "off"},
        )
    op.create_table(
        "memory_facts_vectors",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("embedder", sa.Text(), primary_key=True),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        schema=schema,
    )
    op.create_table(
        "memory_facts_signatures",
        sa.Column("scope", sa.Text(), primary_key=True),
        sa.Column("embedder", sa.Text(), primary_key=True),
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        schema=schema,
    )


def _create_versions() -> None:
    op.create_table(
        _VERSIONS,
        _growing_key("row_number"),
        sa.Column("fact_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("source_episode_id", sa.Text()),
        sa.Column("owner", sa.Text()),
        sa.Column("valid_from", _instant(), nullable=False),
        sa.Column("superseded_at", _instant(), nullable=False),
        schema=target_schema(),
    )
    _create_index("idx_fact_versions_fact", _VERSIONS, ["fact_id", "number"], "fact_id", unique=True)
    _create_index("idx_fact_versions_said", _VERSIONS, ["fact_id", "valid_from", "number"], "fact_id")
    of_owner = ["owner", "fact_id", "number"]
    _create_index("idx_fact_versions_owner", _VERSIONS, of_owner, "fact_id", only="owner IS NOT NULL")


def _create_users() -> None:
    op.create_table(
        _USERS,
        _growing_key("number"),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("canonical_id", sa.Text(), nullable=False),
        sa.Column("word", sa.Text(), nullable=False),
        sa.Column("telegram_id", sa.Text()),
        sa.Column("email", sa.Text()),
        sa.Column("display_name", sa.Text()),
        sa.Column("total_conversations", sa.BigInteger(), nullable=False),
        sa.Column("last_conversation_at", _instant()),
        sa.Column("merged_into_id", sa.Text()),
        sa.Column("stands_for", sa.Text(), nullable=False),
        sa.Column("written_by", sa.Text(), nullable=False),
        sa.Column("first_seen", _instant(), nullable=False),
        sa.Column("updated_at", _instant(), nullable=False),
        schema=target_schema(),
    )
    _create_index("idx_users_id", _USERS, ["id"], "id", unique=True)
    _create_index("idx_users_word", _USERS, ["word"], unique=True)
    _create_index("idx_users_stands_for", _USERS, ["stands_for"])
    _create_index("idx_users_canonical_id", _USERS, ["canonical_id"])
    for contact in ("telegram_id", "email"):
        columns, only = ["space", contact], f"{contact} IS NOT NULL"
        _create_index(f"idx_users_{contact}", _USERS, columns, unique=True, only=only)
    _create_index("idx_users_order", _USERS, ["space", "first_seen", "id"], "id")


def _on_sqlite() -> bool:
    return target_schema() is None


def _instant() -> Any:
    return sa.Text() if _on_sqlite() else sa.DateTime(timezone=True)


def _growing_key(name: str) -> sa.Column[Any]:
    return sa.Column(name, *([sa.Integer()] if _on_sqlite() else [sa.BigInteger(), sa.Identity()]), primary_key=True)


def _create_index(
    name: str, table: str, columns: list[Any], by_code_point: str | None = None, *, only: str = "", unique: bool = False
) -> None:
    options: dict[str, Any] = {"postgresql_ops": {by_code_point: 'COLLATE "C"'}} if by_code_point else {}
    if only:
        options |= {"postgresql_where": sa.text(only), "sqlite_where": sa.text(only)}
    op.create_index(name, table, columns, unique=unique, schema=target_schema(), **options)


def downgrade() -> None:
    schema = target_schema()
    for name in (_USERS, _VERSIONS, "memory_facts_signatures", "memory_facts_vectors"):
        op.drop_table(name, schema=schema)
    if schema is None:
        for name in reversed(_TRIGGERS):
            op.execute(f"DROP TRIGGER {_WORDS}_{name}")
        op.execute(f"DROP TABLE {_WORDS}")
    op.drop_table(_FACTS, schema=schema)
