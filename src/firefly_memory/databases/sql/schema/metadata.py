"""Every table, index and check, once, for SQLite and PostgreSQL.

The Alembic revisions in ``migrations/`` produce exactly this (a test compares them), statements are built from it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    DateTime,
    Float,
    Index,
    MetaData,
    Table,
    Text,
    literal_column,
    text,
)
from sqlalchemy.types import TypeEngine

from firefly_memory.databases.sql.schema import names

REVISIONS = ("0001", "0002", "0003", "0004")
"""Every revision this version of the library knows, oldest first. A test keeps it in step with ``migrations/``."""

HEAD = REVISIONS[-1]
"""The revision this version of the library needs."""


ONLINE: frozenset[str] = frozenset()
"""The revisions among them that build an index ``CONCURRENTLY``, and so are no part of the others' transaction."""


def is_later_and_compatible(revision: str) -> bool:
    """Whether ``revision``, of a later version of the library, says that this version goes on working with it.

    ``0005_0004`` is revision 0005, and has only added to what a version that needs 0004 uses.
    """
    later = re.fullmatch(r"(\d{4})_(\d{4})", revision)
    return later is not None and later[2] <= HEAD[:4] < later[1]


VERSION_TABLE = "firefly_memory_version"
"""Alembic's table, under a name of our own: the application may keep its ``alembic_version`` in the same place."""

POSTGRESQL_SCHEMA = names.POSTGRESQL_SCHEMA


class _OnSQLite:
    """SQLite has neither JSON nor instants, but text keeps both. A column declared JSON would get numeric affinity,
    which turns ``-0.0`` and integers beyond 64 bits into other numbers. ISO 8601 in UTC sorts by time."""

    document: TypeEngine[Any] = Text()
    instant: TypeEngine[Any] = Text()
    now = "(strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))"

    def only(self, condition: ColumnElement[bool]) -> dict[str, Any]:
        return {"sqlite_where": condition}

    def by_code_point(self, *columns: str) -> dict[str, Any]:
        return {}  # SQLite's own way


class _OnPostgreSQL:
    """The documented types. Columns have the database's own collation, which differs from server to server; indexes
    that serve an order are built, and their statements written, by code point, so that order is the same everywhere."""

    instant: TypeEngine[Any] = DateTime(timezone=True)
    now = "now()"

    @property
    def document(self) -> TypeEngine[Any]:
        from sqlalchemy.dialects.postgresql import JSONB  # slow to load, and not needed for SQLite

        return JSONB()

    def only(self, condition: ColumnElement[bool]) -> dict[str, Any]:
        return {"postgresql_where": condition}

    def by_code_point(self, *columns: str) -> dict[str, Any]:
        return {"postgresql_ops": dict.fromkeys(columns, 'COLLATE "C"')}


@cache
def metadata(schema_name: str | None) -> MetaData:
    """All tables: in a PostgreSQL schema, or, for ``None``, on SQLite."""
    place = _OnSQLite() if schema_name is None else _OnPostgreSQL()
    tables = MetaData(schema=schema_name)
    _memory_entries(tables, place)
    _conversations(tables, place)
    _dialogues(tables, place)
    return tables


def _memory_entries(tables: MetaData, place: _OnSQLite | _OnPostgreSQL) -> None:
    entries = Table(
        "memory_entries",
        tables,
        Column("entry_id", Text, primary_key=True),
        Column("namespace", Text, nullable=False),
        Column("scope", Text, nullable=False),
        Column("key", Text),
        Column("content", place.document, nullable=False),
        Column("metadata", place.document, nullable=False, server_default="{}"),
        Column("created_at", place.instant, nullable=False, server_default=text(place.now)),
        Column("expires_at", place.instant),
        Column("importance", Float, nullable=False, server_default=text("0.5")),
        CheckConstraint("importance >= 0.0 AND importance <= 1.0", name="memory_entries_importance_check"),
    )
    c = entries.c
    keyed = place.only(c.key.is_not(None))
    Index("idx_namespace", c.namespace)
    Index("idx_namespace_key", c.namespace, c.key, **keyed)
    Index("idx_expires_at", c.expires_at, **place.only(c.expires_at.is_not(None)))
    # Beyond the documents, for rule R11: a page of a namespace, and the newest entry of a key, each from one place.
    Index(
        "idx_namespace_order",
        c.namespace,
        c.created_at,
        c.entry_id,
        **place.by_code_point("namespace", "entry_id"),
    )
    Index(
        "idx_namespace_key_order",
        c.namespace,
        c.key,
        c.created_at,
        c.entry_id,
        **keyed,
        **place.by_code_point("namespace", "key", "entry_id"),
    )


def _conversations(tables: MetaData, place: _OnSQLite | _OnPostgreSQL) -> None:
    conversations = Table(
        "memory_conversations",
        tables,
        Column("conversation_id", Text, primary_key=True),
        # How many turns there are, and the sum of their tokens: an append takes its place from here.
        Column("turns", BigInteger, nullable=False),
        Column("tokens", BigInteger, nullable=False),
        # How many of them, from the first on, the summary stands for.
        Column("evicted_turns", BigInteger, nullable=False, server_default=text("0")),
        Column("evicted_tokens", BigInteger, nullable=False, server_default=text("0")),
        Column("summary", Text),
        # Who is at work on the next summary, and until when nobody else should be.
        Column("claim", Text),
        Column("claimed_until", place.instant),
        Column("created_at", place.instant, nullable=False),
        Column("updated_at", place.instant, nullable=False),
    )
    Index(
        "idx_conversations_order",
        conversations.c.created_at,
        conversations.c.conversation_id,
        **place.by_code_point("conversation_id"),
    )
    turns = Table(
        "memory_turns",
        tables,
        Column("conversation_id", Text, primary_key=True),
        Column("turn_id", BigInteger, primary_key=True, autoincrement=False),
        Column("tokens", BigInteger, nullable=False),
        # The sum of the tokens of all turns before this one: the window is found by it.
        Column("tokens_before", BigInteger, nullable=False),
        Column("user_prompt", Text, nullable=False),
        Column("assistant_response", Text, nullable=False),
        # JSON text as the messages' own library writes it, byte for byte.
        Column("messages", Text),
        Column("messages_format", Text),
        Column("metadata", place.document, nullable=False, server_default="{}"),
        Column("idempotency_key", Text),
        # Given to each append by its writer, who recognises it after a lost connection.
        Column("append_id", Text, nullable=False),
        Column("created_at", place.instant, nullable=False),
    )
    c = turns.c
    Index("idx_turns_tokens", c.conversation_id, c.tokens_before)
    Index(
        "idx_turns_idempotency",
        c.conversation_id,
        c.idempotency_key,
        unique=True,
        **place.only(c.idempotency_key.is_not(None)),
    )


def _dialogues(tables: MetaData, place: _OnSQLite | _OnPostgreSQL) -> None:
    dialogues = Table(
        "memory_dialogues",
        tables,
        Column("conversation_id", Text, primary_key=True),
        Column("revision", Text, nullable=False),
        Column("head_id", Text),
        Column("scope", Text),
        Column("forked_from", Text),
        Column("forked_at", Text),
        # JSON text, like the two after it: a list of entries.
        Column("branches", Text, nullable=False),
        Column("usage", Text, nullable=False),
        Column("deferred_tool_requests", Text),
        Column("updated_at", place.instant, nullable=False),
        Column("format_version", BigInteger, nullable=False),
    )
    Index("idx_dialogues_order", dialogues.c.updated_at)
    Index("idx_dialogues_scope_order", dialogues.c.scope, dialogues.c.updated_at)
    entries = Table(
        "memory_dialogue_entries",
        tables,
        Column("entry_id", Text, primary_key=True),
        Column("parent_id", Text),
        Column("kind", Text, nullable=False),
        # JSON text as pydantic-ai writes it.
        Column("message", Text, nullable=False),
        # How many entries come right after this one, and of how many dialogues it is the head or the end of a branch.
        Column("holders", BigInteger, nullable=False),
    )
    # What nobody holds any more: a few rows at most, which the next deletion takes with it.
    released = place.only(entries.c.holders == literal_column("0"))
    Index("idx_dialogue_entries_released", entries.c.entry_id, **released)
