"""Ids of facts begin with ``fact:``, and namespaces that begin with ``conversation:`` are for conversations.

Both are closed to whoever may choose an id or a namespace. Before, the id of a fact was the bare digest of namespace
and key. PostgreSQL computes it to tell a fact from another entry of working memory; on SQLite a function of ours does.
Only SQL that is printed for SQLite goes by the shape of an id. An entry that somebody saved under a new id makes way:
its id begins with ``renamed:``, and ends as it was. In a namespace, ``renamed:conv:`` takes the place of
``conversation:``, which has as many characters: a name that is as long as names may be stays valid.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from alembic import op

from firefly_memory.databases.sql.schema.alembic_env import computes_fact_ids, target_schema

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def _between(column: str, first: str, last: str) -> str:
    """By code point, as the index is built that serves it."""
    return f"{column} COLLATE pg_catalog.\"C\" >= '{first}' AND {column} COLLATE pg_catalog.\"C\" < '{last}'"


# The namespace as bytes without escapes, in hexadecimal digits; a surrogate becomes three bytes.
_UNESCAPED = r"""(
    SELECT pg_catalog.string_agg(
      CASE
        WHEN found[1] = pg_catalog.chr(16) || pg_catalog.chr(16) THEN '10'
        WHEN found[1] = pg_catalog.chr(16) || '0' THEN '00'
        WHEN found[1] ~ '^\u0010d' THEN (
          SELECT 'ed' || pg_catalog.to_hex(128 + ((code >> 6) & 63)) || pg_catalog.to_hex(128 + (code & 63))
          FROM (SELECT CAST(CAST('x0000' || pg_catalog.substr(found[1], 2) AS bit(32)) AS integer) AS code) AS surrogate
        )
        ELSE pg_catalog.encode(pg_catalog.convert_to(found[1], 'UTF8'), 'hex')
      END, '' ORDER BY place)
    FROM pg_catalog.regexp_matches(namespace, '(\u0010(\u0010|0|d[89a-f][0-9a-f]{2})|[^\u0010]+|\u0010)', 'g')
      WITH ORDINALITY AS part (found, place)
  )"""

_DIGEST = (
    "pg_catalog.encode(pg_catalog.sha256(CASE WHEN pg_catalog.strpos(namespace, pg_catalog.chr(16)) = 0"
    " THEN pg_catalog.convert_to(namespace, 'UTF8')"
    f" ELSE pg_catalog.decode({_UNESCAPED}, 'hex') END"
    " || pg_catalog.decode('00', 'hex') || pg_catalog.convert_to(key, 'UTF8')), 'hex')"
)

_POSTGRESQL = {
    "of_facts": _between("entry_id", "fact:", "fact;"),
    "in_working_memory": _between("namespace", "working:", "working;"),
    "of_conversations": _between("namespace", "conversation:", "conversation;"),
    "of_renamed": _between("namespace", "renamed:conv:", "renamed:conv;"),
    "is_fact": f"entry_id = 'fact:' || {_DIGEST}",
    "was_fact": f"entry_id ~ '^[0-9a-f]{{64}}$' AND entry_id = {_DIGEST}",
    "same_fact": "AND before.namespace = memory_entries.namespace AND before.key = memory_entries.key",
    "random": "pg_catalog.md5(CAST(pg_catalog.random() AS text) || entry_id)",
    "kept": (  # half an escape would be another name
        "CASE WHEN pg_catalog.length(entry_id) <= 400 THEN entry_id"
        " ELSE pg_catalog.split_part(pg_catalog.substr(entry_id, 1, 400), pg_catalog.chr(16), 1) END"
    ),
    "substr": "pg_catalog.substr",
    "length": "pg_catalog.length",
}

_SQLITE = {
    "of_facts": "entry_id >= 'fact:' AND entry_id < 'fact;'",
    "in_working_memory": "namespace >= 'working:' AND namespace < 'working;'",
    "of_conversations": "namespace >= 'conversation:' AND namespace < 'conversation;'",
    "of_renamed": "namespace >= 'renamed:conv:' AND namespace < 'renamed:conv;'",
    "is_fact": "entry_id IS firefly_fact_id(namespace, key)",
    "was_fact": "length(entry_id) = 64 AND 'fact:' || entry_id IS firefly_fact_id(namespace, key)",
    "same_fact": _POSTGRESQL["same_fact"],
    "random": "lower(hex(randomblob(16)))",
    "kept": (
        "substr(entry_id, 1, CASE"
        " WHEN length(entry_id) > 400 AND instr(substr(entry_id, 1, 400), char(16)) > 0"
        " THEN instr(entry_id, char(16)) - 1"
        " ELSE 400 END)"
    ),
    "substr": "substr",
    "length": "length",
}

_SQLITE_BY_SHAPE = _SQLITE | {
    "is_fact": "length(entry_id) = 69",
    "was_fact": "length(entry_id) = 64 AND entry_id NOT GLOB '*[^0-9a-f]*'",
    "same_fact": "",
}

_UPGRADE = (
    """
    UPDATE {table} SET entry_id = 'renamed:' || {random} || ':' || {kept}
    WHERE {of_facts} AND (
      NOT ({in_working_memory} AND key IS NOT NULL AND {is_fact})
      OR EXISTS (
        SELECT 1 FROM {table} AS before WHERE before.entry_id = {substr}(memory_entries.entry_id, 6) {same_fact}
      )
    )
    """,
    "UPDATE {table} SET entry_id = 'fact:' || entry_id WHERE {in_working_memory} AND key IS NOT NULL AND {was_fact}",
    "UPDATE {table} SET namespace = 'renamed:conv:' || {substr}(namespace, 14) WHERE {of_conversations}",
)

_DOWNGRADE = (
    """
    UPDATE {table} SET entry_id = 'renamed:' || {random} || ':' || {kept}
    WHERE entry_id IN (SELECT {substr}(entry_id, 6) FROM {table} WHERE {of_facts} AND {length}(entry_id) = 69)
    """,
    "UPDATE {table} SET entry_id = {substr}(entry_id, 6) WHERE {of_facts} AND {length}(entry_id) = 69",
    "UPDATE {table} SET namespace = 'conversation:' || {substr}(namespace, 14) WHERE {of_renamed}",
)


def upgrade() -> None:
    _execute(_UPGRADE)


def downgrade() -> None:
    _execute(_DOWNGRADE)


def _execute(statements: tuple[str, ...]) -> None:
    if op.get_context().dialect.name == "sqlite":
        words, table = _SQLITE if computes_fact_ids() else _SQLITE_BY_SHAPE, "memory_entries"
    else:
        words, table = _POSTGRESQL, f'"{target_schema()}".memory_entries'
        op.execute("SET LOCAL statement_timeout = 0")  # a long table takes its time
    for statement in statements:
        op.execute(statement.format(table=table, **words))
