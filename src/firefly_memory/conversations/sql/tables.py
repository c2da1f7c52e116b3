"""The tables of conversations, of their turns, and of the flushes by which turns left the window."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, MetaData, Table, Text, text

from firefly_memory.databases.sql.schema.columns import GUARDED, Columns


def define(tables: MetaData, columns: Columns) -> None:
    conversations = Table(
        "memory_conversations",
        tables,
        Column("conversation_id", Text, primary_key=True),
        # How many turns there are, and the sum of their tokens: an append takes its place from here.
        Column("turns", BigInteger, nullable=False),
        Column("tokens", BigInteger, nullable=False),
        # How many of them, from the first on, are out of the window: the summary stands for them, if there is one.
        Column("evicted_turns", BigInteger, nullable=False, server_default=text("0")),
        Column("evicted_tokens", BigInteger, nullable=False, server_default=text("0")),
        Column("summary", Text),
        # Who is at work on the next flush, and until when nobody else should be.
        Column("claim", Text),
        columns.instant("claimed_until"),
        columns.instant("created_at", nullable=False),
        columns.instant("updated_at", nullable=False),
        # The person whose conversation it is: set when it is made.
        Column("owner", Text),
        # How many turns, from the first on, are deleted.
        Column("dropped_turns", BigInteger, nullable=False, server_default=text("0")),
        # The newest flush in force, and the turns at which each strategy last ran.
        Column("flush_id", Text),
        Column("marks", Text),
        info=GUARDED,
    )
    c = conversations.c
    by_id = columns.by_code_point("conversation_id")
    of_owners = {**by_id, **columns.only(c.owner.is_not(None))}
    Index("idx_conversations_order", c.created_at, c.conversation_id, **by_id)
    Index("idx_conversations_activity", c.updated_at, c.conversation_id, **by_id)
    Index("idx_conversations_owner_order", c.owner, c.created_at, c.conversation_id, **of_owners)
    Index("idx_conversations_owner_activity", c.owner, c.updated_at, c.conversation_id, **of_owners)
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
        columns.document("metadata", nullable=False, server_default="{}"),
        Column("idempotency_key", Text),
        # Given to each append by its writer, who recognises it after a lost connection.
        Column("append_id", Text, nullable=False),
        columns.instant("created_at", nullable=False),
        # The size of the prompt that the last call of the model reported.
        Column("input_tokens", BigInteger),
    )
    c = turns.c
    Index("idx_turns_tokens", c.conversation_id, c.tokens_before)
    Index(
        "idx_turns_idempotency",
        c.conversation_id,
        c.idempotency_key,
        unique=True,
        **columns.only(c.idempotency_key.is_not(None)),
    )
    Table(
        "memory_flushes",
        tables,
        Column("conversation_id", Text, primary_key=True),
        # The claim under which it was made.
        Column("flush_id", Text, primary_key=True),
        # The flush that was in force before it: they are a chain, from the head's flush_id on.
        Column("previous", Text),
        Column("strategy", Text, nullable=False),
        # How many turns are out of the window since, and the same before, with their tokens and their summary.
        Column("turns", BigInteger, nullable=False),
        Column("turns_before", BigInteger, nullable=False),
        Column("tokens_before", BigInteger, nullable=False),
        Column("summary_before", Text),
        columns.instant("created_at", nullable=False),
    )
