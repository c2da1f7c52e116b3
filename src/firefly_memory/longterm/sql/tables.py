"""The tables of facts, of what they said before, and of people."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, MetaData, Table, Text

from firefly_memory.databases.sql.schema.columns import GUARDED, Columns
from firefly_memory.longterm.rows import FACTS, USERS, VERSIONS
from firefly_memory.search.sql.tables import define_index, index_columns


def define(tables: MetaData, columns: Columns) -> None:
    by_id = columns.by_code_point("id")
    facts = Table(
        FACTS.table,
        tables,
        columns.growing_key("number"),
        Column("id", Text, nullable=False),
        # The tenant.
        Column("space", Text, nullable=False),
        Column("fact_scope", Text, nullable=False),
        # Whose scope it is; empty for the global one.
        Column("scope_id", Text, nullable=False),
        Column("key", Text, nullable=False),
        # JSON text.
        Column("value", Text, nullable=False),
        Column("fact_type", Text, nullable=False),
        Column("confidence", Double, nullable=False),
        Column("times_confirmed", BigInteger, nullable=False),
        Column("times_contradicted", BigInteger, nullable=False),
        Column("source_episode_id", Text),
        # The person whose data it is.
        Column("owner", Text),
        # How many values it had before.
        Column("versions", BigInteger, nullable=False),
        # The id of the last write, by which its writer knows it after a lost reply.
        Column("written_by", Text, nullable=False),
        # Of reads. These two are in no index, so that PostgreSQL can count a read inside of the row's own page.
        Column("access_count", BigInteger, nullable=False),
        columns.instant("last_accessed"),
        columns.instant("valid_from", nullable=False),
        columns.instant("created_at", nullable=False),
        *index_columns(columns),
        info=GUARDED,
    )
    c = facts.c
    Index("idx_facts_id", c.id, unique=True, **by_id)
    Index("idx_facts_key", c.scope, c.key, unique=True)
    Index("idx_facts_list", c.scope, c.confidence.desc(), c.newest.desc(), c.id, **by_id)
    Index("idx_facts_owner", c.owner, c.id, **{**by_id, **columns.only(c.owner.is_not(None))})
    define_index(facts, columns, FACTS)
    versions = Table(
        VERSIONS,
        tables,
        columns.growing_key("row_number"),
        Column("fact_id", Text, nullable=False),
        # From 1 on, for each fact.
        Column("number", BigInteger, nullable=False),
        Column("value", Text, nullable=False),
        Column("confidence", Double, nullable=False),
        Column("source_episode_id", Text),
        Column("owner", Text),
        columns.instant("valid_from", nullable=False),
        columns.instant("superseded_at", nullable=False),
        info=GUARDED,
    )
    c = versions.c
    by_fact = columns.by_code_point("fact_id")
    Index("idx_fact_versions_fact", c.fact_id, c.number, unique=True, **by_fact)
    # What a fact said at an instant.
    Index("idx_fact_versions_said", c.fact_id, c.valid_from, c.number, **by_fact)
    Index("idx_fact_versions_owner", c.owner, c.fact_id, c.number, **{**by_fact, **columns.only(c.owner.is_not(None))})
    people = Table(
        USERS,
        tables,
        columns.growing_key("number"),
        Column("id", Text, nullable=False),
        Column("space", Text, nullable=False),
        Column("canonical_id", Text, nullable=False),
        # That of the place of the person's own facts.
        Column("word", Text, nullable=False),
        Column("telegram_id", Text),
        Column("email", Text),
        Column("display_name", Text),
        Column("total_conversations", BigInteger, nullable=False),
        columns.instant("last_conversation_at"),
        # The id of the person whom this one was merged into, and this person's word: its own if it was not.
        Column("merged_into_id", Text),
        Column("stands_for", Text, nullable=False),
        Column("written_by", Text, nullable=False),
        columns.instant("first_seen", nullable=False),
        columns.instant("updated_at", nullable=False),
        info=GUARDED,
    )
    c = people.c
    Index("idx_users_id", c.id, unique=True, **by_id)
    Index("idx_users_word", c.word, unique=True)
    Index("idx_users_stands_for", c.stands_for)
    Index("idx_users_canonical_id", c.canonical_id)
    Index("idx_users_telegram_id", c.space, c.telegram_id, unique=True, **columns.only(c.telegram_id.is_not(None)))
    Index("idx_users_email", c.space, c.email, unique=True, **columns.only(c.email.is_not(None)))
    Index("idx_users_order", c.space, c.first_seen, c.id, **by_id)
