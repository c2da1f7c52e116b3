"""Conversations of any length, put into the tables and collections directly."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pymongo
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pymongo import ASCENDING

from benchmarks.one_turn import ANSWER, MESSAGES, PROMPT, WHEN
from benchmarks.stores import BARE, Places
from firefly_memory import TokenEstimator
from firefly_memory.conversations.log import StoredTurn
from firefly_memory.conversations.mongodb import documents
from firefly_memory.databases.sql.schema.metadata import POSTGRESQL_SCHEMA
from firefly_memory.messages.storage import PYDANTIC_AI

BUDGET = 4_000
"""Tokens of a window."""

_TEXT = ModelMessagesTypeAdapter.dump_json(MESSAGES).decode()

ESTIMATOR = TokenEstimator(model="gpt-4")
"""Of a model whose vocabulary the tests bring along; it estimates where that is not installed."""

TOKENS_ARE_COUNTED = ESTIMATOR.prepare()
TOKENS = ESTIMATOR.estimate_turn(PROMPT, ANSWER, MESSAGES)

Fill = Callable[[str, int, int], None]
"""Makes so many conversations, ``<prefix>0``, ``<prefix>1`` and so on, of so many turns each."""


def fills(places: Places) -> dict[str, list[Fill]]:
    """For each backend our side's, and that of the bare driver."""
    urls = places.postgresql_url, places.mongodb_url
    return {
        "sqlite": [_fill_sqlite(places.ours_path), _fill_sqlite(places.bare_path)],
        "postgresql": [_fill_postgresql(urls[0], POSTGRESQL_SCHEMA), _fill_postgresql(urls[0], BARE)],
        "mongodb": [_fill_our_mongodb(urls[1]), _fill_bare_mongodb(urls[1])],
    }


# SQL: the same tables on both sides.

_HEADS = """INSERT INTO {schema}memory_conversations (conversation_id, turns, tokens, created_at, updated_at)
    SELECT '{prefix}' || c.number, {turns}, {turns} * {tokens}, '{when}', '{when}' FROM {conversation_numbers}"""
_TURNS = """INSERT INTO {schema}memory_turns (conversation_id, turn_id, tokens, tokens_before, user_prompt,
    assistant_response, messages, messages_format, append_id, created_at)
    SELECT '{prefix}' || c.number, t.number, {tokens}, {tokens} * t.number, {prompt}, {answer}, {messages},
    '{format}', 'append ' || t.number, '{when}' FROM {conversation_numbers}, {turn_numbers} ORDER BY 1, 2"""
_VALUES = {"prompt": PROMPT, "answer": ANSWER, "messages": _TEXT}


def _written(sql: str, prefix: str, schema: str, parameter: str, **numbers: str | int) -> Any:
    names = {name: parameter.format(name) for name in _VALUES}
    when = WHEN.isoformat(timespec="microseconds")
    return sql.format(prefix=prefix, schema=schema, tokens=TOKENS, format=PYDANTIC_AI, when=when, **names, **numbers)


def _fill_sqlite(path: Path) -> Fill:
    def numbers(count: int, name: str) -> str:
        following = f"SELECT number + 1 FROM n WHERE number < {count - 1}"
        return f"(WITH RECURSIVE n(number) AS (SELECT 0 UNION ALL {following}) SELECT number FROM n) AS {name}"

    def fill(prefix: str, conversations: int, turns: int) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        of = {"conversation_numbers": numbers(conversations, "c"), "turn_numbers": numbers(turns, "t")}
        for sql in (_HEADS, _TURNS):
            connection.execute(_written(sql, prefix, "", ":{}", turns=turns, **of), _VALUES)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    return fill


def _fill_postgresql(url: str, schema: str) -> Fill:
    def fill(prefix: str, conversations: int, turns: int) -> None:
        of = {
            "conversation_numbers": f"generate_series(0, {conversations - 1}) AS c(number)",
            "turn_numbers": f"generate_series(0, {turns - 1}) AS t(number)",
        }
        with psycopg.connect(url, autocommit=True) as connection:
            for sql in (_HEADS, _TURNS):
                connection.execute(_written(sql, prefix, f"{schema}.", "%({})s", turns=turns, **of), _VALUES)

    return fill


# MongoDB: our documents, and simpler ones.

_BATCH = 2_000


def _fill_our_mongodb(url: str) -> Fill:
    def fill(prefix: str, conversations: int, turns: int) -> None:
        client: pymongo.MongoClient[Any]
        with pymongo.MongoClient(url) as client:
            database: Any = client.get_database("firefly_memory")
            for number in range(conversations):
                name = f"{prefix}{number}"
                head = documents.new_conversation(name, WHEN)
                database[documents.CONVERSATIONS].insert_one(head)
                for start in range(0, turns, _BATCH):
                    tail = documents.Tail(head["life"], start, start * TOKENS, 0)
                    drafts = [_draft(f"{name}/{turn}") for turn in range(start, min(turns, start + _BATCH))]
                    database[documents.CONVERSATIONS].insert_many(documents.new_turns(name, drafts, tail))

    return fill


def _draft(append_id: str) -> StoredTurn:
    return StoredTurn(-1, TOKENS, PROMPT, ANSWER, _TEXT, PYDANTIC_AI, {}, None, append_id, WHEN)


def _fill_bare_mongodb(url: str) -> Fill:
    def fill(prefix: str, conversations: int, turns: int) -> None:
        client: pymongo.MongoClient[Any]
        with pymongo.MongoClient(url) as client:
            collection: Any = client[BARE].turns
            collection.create_index([("conversation_id", ASCENDING), ("turn_id", ASCENDING)], unique=True)
            for number in range(conversations):
                for start in range(0, turns, _BATCH):
                    batch = range(start, min(turns, start + _BATCH))
                    collection.insert_many(
                        [bare_document(f"{prefix}{number}", turn, turn * TOKENS, _TEXT) for turn in batch]
                    )

    return fill


def bare_document(conversation_id: str, turn_id: int, tokens_before: int, messages: str) -> dict[str, Any]:
    return {
        "conversation_id": conversation_id,
        "turn_id": turn_id,
        "tokens": TOKENS,
        "tokens_before": tokens_before,
        "user_prompt": PROMPT,
        "assistant_response": ANSWER,
        "messages": messages,
        "metadata": {},
        "created_at": datetime.now(UTC),
    }
