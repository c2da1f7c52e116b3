"""The tables of feeds and of their messages."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, MetaData, Table, Text, true

from firefly_memory.databases.sql.schema.columns import GUARDED, Columns


def define(tables: MetaData, columns: Columns) -> None:
    feeds = Table(
        "memory_feeds",
        tables,
        Column("location", Text, primary_key=True),
        # The number of the newest message: an append takes its numbers from here. No index has it, nor updated_at, so
        # that PostgreSQL can update the row in its place.
        Column("newest", BigInteger, nullable=False),
        # How many messages, from the first on, are deleted.
        Column("dropped", BigInteger, nullable=False),
        # The person whose feed it is: set when it is made.
        Column("owner", Text),
        columns.instant("created_at", nullable=False),
        columns.instant("updated_at", nullable=False),
        info=GUARDED,
    )
    c = feeds.c
    by_location = columns.by_code_point("location")
    Index("idx_feeds_location", c.location, **by_location)
    Index("idx_feeds_owner", c.owner, c.location, **{**by_location, **columns.only(c.owner.is_not(None))})
    messages = Table(
        "memory_feed_messages",
        tables,
        Column("location", Text, primary_key=True),
        Column("number", BigInteger, primary_key=True, autoincrement=False),
        # Whose message it is.
        Column("agent_key", Text),
        # Whether people or the assistant say it, and whether it is for every agent.
        Column("is_conversation", Boolean, nullable=False),
        Column("is_global", Boolean, nullable=False),
        columns.document("message", nullable=False),
        # Given to each message by its writer, who recognises it after a lost connection.
        Column("append_id", Text, nullable=False),
        columns.instant("created_at", nullable=False),
    )
    c = messages.c
    Index("idx_feed_messages_conversation", c.location, c.number, **columns.only(c.is_conversation.is_(true())))
    Index("idx_feed_messages_global", c.location, c.number, **columns.only(c.is_global.is_(true())))
    Index("idx_feed_messages_agent", c.location, c.agent_key, c.number, **columns.only(c.agent_key.is_not(None)))
