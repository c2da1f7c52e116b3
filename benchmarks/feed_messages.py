"""Messages of a team of agents, and feeds of any length that are made of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Any

import orjson
import psycopg
import pymongo
from pymongo import ASCENDING, IndexModel

from benchmarks.bare import new_id
from benchmarks.stores import BARE, Places

Message = dict[str, Any]

WHEN = datetime(2024, 4, 2, 9, 30, tzinfo=UTC)
_TEXT = (
    "INV-2024-0188 of Acme Corp is open: 980.00 EUR, due on 30 April, ordered by the workshop in March. The order and "
    "the delivery note say the same sum. The invoice names another bank account than the ones before it."
)
_BATCH = 2_000


@cache
def agents_of(size: int) -> list[str]:
    """The agents who write to a feed of so many messages."""
    return [f"worker_{number}" for number in range(1_000 if size >= 10_000 else 3)]


def trace(agent_key: str) -> Message:
    """What an agent notes: about 300 characters as JSON."""
    return {"type": "observation", "content": _TEXT, "agent_key": agent_key, "timestamp": WHEN.isoformat()}


def messages(size: int) -> Iterator[Message]:
    """The messages of a feed: eight of ten are of its agents in turn, one of those for every agent, and two are said by
    a person and the assistant."""
    agents, traces = agents_of(size), 0
    for number in range(size):
        if number % 5 == 0:
            kind = "user_message" if number % 10 == 0 else "assistant_message"
            yield {"type": kind, "content": _TEXT, "timestamp": WHEN.isoformat()}
            continue
        told_to_all = {"is_global": True} if number % 10 == 9 else {}
        yield trace(agents[traces % len(agents)]) | told_to_all
        traces += 1


def is_conversation(message: Message) -> bool:
    return message["type"] in {"user_message", "assistant_message"}


# Feeds of the bare drivers, put into their tables and collections directly.

FEEDS = "memory_feeds (location, newest, dropped, created_at, updated_at)"
MESSAGES = (
    "memory_feed_messages (location, number, agent_key, is_conversation, is_global, message, append_id, created_at)"
)


def _rows(location: str, size: int, when: Any) -> Iterator[tuple[Any, ...]]:
    for number, each in enumerate(messages(size), 1):
        kinds = is_conversation(each), "is_global" in each
        yield location, number, each.get("agent_key"), *kinds, orjson.dumps(each).decode(), new_id(), when


def fill_sqlite(places: Places, locations: Sequence[str], size: int) -> None:
    when = WHEN.isoformat(timespec="microseconds")
    with sqlite3.connect(places.bare_path) as connection:
        for location in locations:
            connection.execute(f"INSERT INTO {FEEDS} VALUES (?, ?, 0, ?, ?)", (location, size, when, when))
            connection.executemany(
                f"INSERT INTO {MESSAGES} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _rows(location, size, when)
            )
    connection.close()


def fill_postgresql(places: Places, locations: Sequence[str], size: int) -> None:
    with psycopg.connect(places.postgresql_url) as connection, connection.cursor() as cursor:
        for location in locations:
            cursor.execute(f"INSERT INTO {BARE}.{FEEDS} VALUES (%s, %s, 0, %s, %s)", (location, size, WHEN, WHEN))
        with cursor.copy(f"COPY {BARE}.{MESSAGES} FROM STDIN") as copy:
            for location in locations:
                for row in _rows(location, size, WHEN):
                    copy.write_row(row)


COLLECTION = "feed_messages"
BY_NUMBER = [("location", ASCENDING), ("number", ASCENDING)]
OF_CONVERSATION = [("location", ASCENDING), ("is_conversation", ASCENDING), ("number", ASCENDING)]
OF_GLOBALS = [("location", ASCENDING), ("is_global", ASCENDING), ("number", ASCENDING)]
OF_AGENT = [("location", ASCENDING), ("agent_key", ASCENDING), ("number", ASCENDING)]
_INDEXES = [
    IndexModel(BY_NUMBER, unique=True),
    IndexModel(OF_CONVERSATION, partialFilterExpression={"is_conversation": True}),
    IndexModel(OF_GLOBALS, partialFilterExpression={"is_global": True}),
    IndexModel(OF_AGENT, partialFilterExpression={"agent_key": {"$exists": True}}),
]


def document(location: str, number: int, message: Message) -> dict[str, Any]:
    whose = {"agent_key": message["agent_key"]} if "agent_key" in message else {}
    marks = {"is_conversation": is_conversation(message), "is_global": "is_global" in message}
    return {
        "location": location,
        "number": number,
        **whose,
        **{name: True for name, has_it in marks.items() if has_it},
        "message": message,
        "created_at": datetime.now(UTC),
    }


def fill_mongodb(places: Places, locations: Sequence[str], size: int) -> None:
    client: pymongo.MongoClient[Any]
    with pymongo.MongoClient(places.mongodb_url) as client:
        collection: Any = client[BARE][COLLECTION]
        collection.create_indexes(_INDEXES)
        everything = (
            document(location, number, each) for location in locations for number, each in enumerate(messages(size), 1)
        )
        while batch := list(islice(everything, _BATCH)):
            collection.insert_many(batch)
