"""Ids of facts begin with ``fact:``, and namespaces that begin with ``conversation:`` are for conversations.

Both are closed to whoever may choose an id or a namespace. Before, the id of a fact was the bare digest of namespace
and key. PostgreSQL computes it to tell a fact from another entry of working memory; SQLite cannot, and goes by its
shape. So does PostgreSQL for a scope with escaped characters. An entry that somebody saved under a new id, or in such a
namespace, makes way: its name begins with ``renamed:``, and ends as it was.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from alembic import op

from firefly_memory.stores.sql.alembic_env import target_schema

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def _between(column: str, first: str, last: str) -> str:
    """By code point, as the index is built that serves it."""
    return f"{column} COLLATE pg_catalog.\"C\" >= '{first}' AND {column} COLLATE pg_catalog.\"C\" < '{last}'"


_POSTGRESQL = {
    "of_facts": _between("entry_id", "fact:", "fact;"),
    "in_working_memory": _between("namespace", "working:", "working;"),
    "of_conversations": _between("namespace", "conversation:", "conversation;"),
    "of_renamed": _between("namespace", "renamed:conversation:", "renamed:conversation;"),
    "is_digest": (
        "(entry_id = pg_catalog.encode(pg_catalog.sha256("
        "pg_catalog.convert_to(namespace, 'UTF8') OPERATOR(pg_catalog.||) pg_catalog.decode('00', 'hex')"
        " OPERATOR(pg_catalog.||) pg_catalog.convert_to(key, 'UTF8')), 'hex')"
        " OR (pg_catalog.strpos(namespace, pg_catalog.chr(16)) > 0 AND entry_id ~ '^[0-9a-f]{64}$'))"
    ),
    "random": "pg_catalog.md5(CAST(pg_catalog.random() AS text) || entry_id)",
    "substr": "pg_catalog.substr",
    "length": "pg_catalog.length",
}

_SQLITE = {
    "of_facts": "entry_id >= 'fact:' AND entry_id < 'fact;'",
    "in_working_memory": "namespace >= 'working:' AND namespace < 'working;'",
    "of_conversations": "namespace >= 'conversation:' AND namespace < 'conversation;'",
    "of_renamed": "namespace >= 'renamed:conversation:' AND namespace < 'renamed:conversation;'",
    "is_digest": "length(entry_id) = 64 AND entry_id NOT GLOB '*[^0-9a-f]*'",
    "random": "lower(hex(randomblob(16)))",
    "substr": "substr",
    "length": "length",
}

_UPGRADE = (
    """
    UPDATE {table} SET entry_id = 'renamed:' || {random} || ':' || {substr}(entry_id, 1, 400)
    WHERE {of_facts} AND (
      NOT ({in_working_memory} AND key IS NOT NULL AND {length}(entry_id) = 69)
      OR EXISTS (SELECT 1 FROM {table} AS before WHERE before.entry_id = {substr}(memory_entries.entry_id, 6))
    )
    """,
    "UPDATE {table} SET entry_id = 'fact:' || entry_id WHERE {in_working_memory} AND key IS NOT NULL AND {is_digest}",
    "UPDATE {table} SET namespace = 'renamed:' || namespace WHERE {of_conversations}",
)

_DOWNGRADE = (
    """
    UPDATE {table} SET entry_id = 'renamed:' || {random} || ':' || {substr}(entry_id, 1, 400)
    WHERE entry_id IN (SELECT {substr}(entry_id, 6) FROM {table} WHERE {of_facts} AND {length}(entry_id) = 69)
    """,
    "UPDATE {table} SET entry_id = {substr}(entry_id, 6) WHERE {of_facts} AND {length}(entry_id) = 69",
    "UPDATE {table} SET namespace = {substr}(namespace, 9) WHERE {of_renamed}",
)


def upgrade() -> None:
    _execute(_UPGRADE)


def downgrade() -> None:
    _execute(_DOWNGRADE)


def _execute(statements: tuple[str, ...]) -> None:
    words, table = _SQLITE, "memory_entries"
    if op.get_context().dialect.name != "sqlite":
        words, table = _POSTGRESQL, f'"{target_schema()}".memory_entries'
        op.execute("SET LOCAL statement_timeout = 0")  # a long table takes its time
    for statement in statements:
        op.execute(statement.format(table=table, **words))
