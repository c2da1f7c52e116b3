"""Writes the databases of this directory, as text: what version 0.1.0, at schema revision 0004, left in SQLite,
PostgreSQL and MongoDB.

It was run once, at commit 44d3706, with pydantic-ai 2.66.0 and the embedded servers of the tests::

    python -m tests.data.release_before_facets.write_databases

A later version would write other databases. This stays as a record of how these were made.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bson import json_util
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage
from pymongo import MongoClient

from firefly_memory import (
    ConversationMemory,
    ConversationTurn,
    EntryStore,
    MemoryEntry,
    MemoryManager,
    MemoryScope,
    WorkingMemory,
    __version__,
    connect,
)
from firefly_memory.schema import HEAD
from tests.support.servers import EmbeddedMongoDB, EmbeddedPostgreSQL
from tests.support.store_contents import agent_conversations, archive_of, contents_of, written

DIRECTORY = Path(__file__).parent
DATABASE = "firefly_memory"

ODD = "b\x00\ud800\x10 %_*/../\\'\"$. Zu\u0308rich 漢字 \U0001f600"
LONG = "ü" * 512
WHEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
FAR = datetime(2999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)

FACTS: list[dict[str, Any]] = [
    {},
    {"scope_id": "session-42"},
    {"scope_id": ODD},
    {"scope_id": "team"},
    {"scope_id": "research"},
    {"conversation_id": "travel"},
    {"conversation_id": ODD},
]


def nested(levels: int) -> Any:
    value: Any = "the innermost"
    for level in range(levels):
        value = [value] if level % 2 else {"deeper": value}
    return value


VALUES = [
    *(None, True, False, 0, 1, 1.0, -0.0, 0.1, 1e22, 5e-324, 1.7976931348623157e308, "", [], {}),
    *(2**31, 2**53 + 1, -(2**63), 2**64, -(3**2000)),
    *("a\x00b", "\ud800 and \udfff", "\\u0000", "\u2028\r\n\t", "a\u0300 \u00e0", "\U0001f468\u200d\U0001f469"),
    *({"": "empty key"}, {"a\x00": 1, "\udc00": 2}, {"$set": {"a.b": 1}, "~str": "a", "~order": ["b"]}),
    {"z": 1, "a": {"y": 2, "b": [1, 1.0, True, "1"]}, "10": 3, "9": 4},
    nested(120),
    "long " * 1000,
]

CONVERSING: list[ModelMessage] = [
    ModelRequest(
        parts=[
            SystemPromptPart("Be brief.", timestamp=WHEN),
            UserPromptPart(
                [
                    "Zürich \x00 漢字 \U0001f600",
                    ImageUrl("https://example.org/a.png"),
                    BinaryContent(bytes(range(256)), media_type="application/pdf"),
                ],
                timestamp=WHEN,
            ),
        ],
        instructions="Answer in German.",
        timestamp=WHEN,
    ),
    ModelResponse(
        parts=[
            ThinkingPart("hm", signature="signed"),
            TextPart("Let me see."),
            ToolCallPart("weather", {"city": "Zürich", "big": 2**70, "exact": 1e22}, tool_call_id="call 1"),
        ],
        model_name="a-model",
        timestamp=WHEN,
        provider_details={"n": 1},
    ),
    ModelRequest(
        parts=[ToolReturnPart("weather", {"degrees": [1, 2.5, None]}, tool_call_id="call 1", timestamp=WHEN)],
        timestamp=WHEN,
    ),
    ModelResponse(parts=[TextPart("Cold.")], timestamp=WHEN),
]


def message(text: str) -> ModelMessage:
    if text.endswith("?"):
        return ModelRequest([UserPromptPart(text, timestamp=WHEN)], timestamp=WHEN)
    return ModelResponse([TextPart(text)], timestamp=WHEN)


def questions(count: int, words: str) -> list[ModelMessage]:
    return [message(f"{words} {number}{mark}") for number in range(count) for mark in "?!"]


async def fill(store: EntryStore) -> None:
    await _entries(store)
    await _facts(store)
    await _conversations(store)
    await _agent_conversations(store)


async def _entries(store: EntryStore) -> None:
    await store.async_save_many("values", [MemoryEntry(content=value) for value in VALUES])
    await store.async_save("metadata", MemoryEntry(metadata={"values": VALUES[:-2], "": {}, "z": 1, "a": ODD}))
    for scope in MemoryScope:
        for importance in (0.0, 0.3, 1.0):
            entry = MemoryEntry(scope=scope, key=scope.value, content=importance, importance=importance)
            await store.async_save("scopes", entry)
    kept = MemoryEntry(entry_id="replaced", key="before", content="before", created_at=WHEN)
    await store.async_save("replacing", kept)
    await store.async_save("replacing", MemoryEntry(entry_id="replaced", key="after", content="after", importance=0.9))
    await store.async_save("replacing", MemoryEntry(entry_id="deleted"))
    await store.async_delete("replacing", "deleted")
    for number, instant in enumerate(
        (datetime(1, 1, 1, tzinfo=UTC), WHEN, datetime(1969, 12, 31, 23, 59, 59, 999999, UTC))
    ):
        entry = MemoryEntry(entry_id=f"time {number}", created_at=instant, expires_at=FAR, content=number)
        await store.async_save("times", entry)
    await store.async_save("times", MemoryEntry(entry_id="expired", expires_at=WHEN, content="not seen any more"))
    for name in (ODD, LONG):
        await store.async_save(name, MemoryEntry(entry_id=name, key=name, content=name, metadata={name: name}))


async def _facts(store: EntryStore) -> None:
    for each in FACTS:
        working = WorkingMemory(store=store, **each)
        await working.async_set("first", {"of": each}, importance=0.75)
        await working.async_set("second", 2**100, ttl=timedelta(days=300_000))
        await working.async_set("first", ["set", "again"])
        await working.async_set(ODD, ODD)
        for number in range(3):
            await working.async_increment("counter", number)
        await working.async_set("forgotten", None)
        await working.async_delete("forgotten")
    team = MemoryManager(store=store, working_scope_id="team")
    await team.working.async_set("whose", "the team's")
    await team.fork("research").working.async_set("whose", "the fork's")


async def _conversations(store: EntryStore) -> None:
    memory = ConversationMemory(store=store)
    await memory.async_new_conversation("empty")
    await _travel(ConversationMemory(store=store, summarize_threshold=60, max_tokens=120, summarizer=_summary))
    await memory.async_fork_conversation("travel", "travel with a summary")
    await memory.async_fork_conversation("travel", "travel begun", turns=2)
    await memory.async_add_turn("travel begun", "Or by bus?", "By bus.")
    await memory.async_add_turn(
        "plain",
        "hello\x00",
        "hi \ud800",
        [{"role": "user", "content": "hello"}, {"role": "assistant", "content": ["\x00", 2**80, {"": 1.0}]}],
        metadata={"": None, "z": 1, "a": ODD},
    )
    await memory.async_add_turn(ODD, "", "only an answer")
    await memory.async_add_turn(LONG, "only a prompt", "", idempotency_key=LONG)
    await memory.async_add_turn("deleted", "a", "b")
    await memory.async_clear("deleted")
    for number in range(2):
        await memory.async_add_turn("made again", f"before {number}", "")
    await memory.async_clear("made again")
    await memory.async_add_turn("made again", "after", "")


async def _travel(memory: ConversationMemory) -> None:
    await memory.async_add_turn("travel", "Zürich?", "Cold.", CONVERSING, metadata={"channel": "web", "n": 2**70})
    for number in range(12):
        prompt, answer = f"Which train leaves at {number} o'clock for Zürich?", f"The one on platform {number}."
        await memory.async_add_turn("travel", prompt, answer, idempotency_key=f"train {number}")
    await memory.async_add_turn("travel", "And back?", "At noon.", [message("And back?"), message("At noon.")])


def _summary(turns: list[ConversationTurn]) -> str:
    return f"A summary of {len(turns)} turns, up to {turns[-1].user_prompt!r}; Zürich \x00."


async def _agent_conversations(store: EntryStore) -> None:
    conversations = agent_conversations(store)
    waiting = DeferredToolRequests(approvals=[ToolCallPart("pay", {"to": "Zürich\x00"}, tool_call_id="1")])
    usage = RunUsage(requests=2, input_tokens=2**40, details={"reasoning": 5})
    long = Conversation(
        conversation_id="long",
        messages=[*CONVERSING, *questions(8, "long")],
        usage=usage,
        deferred_tool_requests=waiting,
        new_message_index=0,
    )
    await conversations.save(long, scope="user\x00")
    await conversations.fork("long", at=6, new_conversation_id="a fork", scope="user\x00")
    await conversations.fork("a fork", at=3, new_conversation_id="a fork of the fork", scope="user\x00")
    await conversations.fork("long", new_conversation_id="all of it", scope="user\x00")
    for name in ("a fork", "a fork of the fork"):
        await _grow(store, name, questions(2, name))
    await _branch(store, "long", at=5, then=questions(2, "a branch"))
    await _branch(store, "long", at=2, then=questions(1, "another branch"))
    await _branch(store, "a fork", at=4, then=[])
    await conversations.save(Conversation(conversation_id=ODD, messages=CONVERSING), scope=LONG)
    await conversations.save(Conversation(conversation_id="empty", messages=[]))
    await conversations.save(Conversation(conversation_id="deleted", messages=questions(2, "deleted")))
    await conversations.delete("deleted")
    root = ConversationEntry(id=f"{ODD} 1", parent_id=None, message=message("root?"))
    leaf = ConversationEntry(id=f"{ODD} 2", parent_id=root.id, message=message("leaf!"))
    record = ConversationRecord(
        conversation_id="written by hand", head_id=root.id, branches=[leaf.id], revision="\ud800", scope=""
    )
    await conversations.write_record(record, new_entries=[root, leaf], expected_revision=None)


async def _grow(store: EntryStore, name: str, more: list[ModelMessage]) -> None:
    conversations = agent_conversations(store)
    conversation = await conversations.load(name)
    assert conversation is not None
    conversation.messages.extend(more)
    await conversations.save(conversation)


async def _branch(store: EntryStore, name: str, at: int, then: list[ModelMessage]) -> None:
    conversations = agent_conversations(store)
    record = await conversations.read_record(name)
    assert record is not None
    await conversations.branch(name, at=at, expected_revision=record.revision)
    if then:
        await _grow(store, name, then)


async def write(kind: str, url: str, dump: Callable[[Path], None]) -> None:
    """Fill the database, and write down what is in it and what the public API says is in it."""
    directory = DIRECTORY / kind
    directory.mkdir(exist_ok=True)
    async with connect(url) as store:
        await fill(store)
        (directory / "expected.json").write_text(written(await contents_of(store, FACTS)) + "\n")
        (directory / "archive.jsonl").write_text(await archive_of(store))
    dump(directory)


def write_sqlite() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "memory.db"

        def dump(target: Path) -> None:
            with closing(sqlite3.connect(path)) as connection:
                (target / "dump.sql").write_text("\n".join(connection.iterdump()) + "\n")

        asyncio.run(write("sqlite", f"sqlite:///{path}", dump))


def write_postgresql() -> None:
    server = EmbeddedPostgreSQL()
    server.start()
    try:

        def dump(target: Path) -> None:
            options = ["--inserts", "--no-owner", "--no-privileges", "--schema", DATABASE, server.url]
            command = [str(server.bin / "pg_dump"), *options]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            # What only pg_dump's own version knows: settings of the session, commands of psql.
            text = re.sub(r"^(SET .*|SELECT pg_catalog\.set_config.*|\\\w+ .*|--.*)\n", "", text, flags=re.MULTILINE)
            (target / "dump.sql").write_text(re.sub(r"\n{3,}", "\n\n", text).lstrip())

        asyncio.run(write("postgresql", server.url, dump))
    finally:
        server.remove()


def write_mongodb() -> None:
    server = EmbeddedMongoDB()
    server.start()
    try:

        def dump(target: Path) -> None:
            indexes = {}
            with MongoClient[dict[str, Any]](server.url) as client:
                database = client[DATABASE]
                for name in sorted(database.list_collection_names()):
                    documents = database[name].find().sort("_id")
                    lines = [json_util.dumps(each, json_options=json_util.CANONICAL_JSON_OPTIONS) for each in documents]
                    (target / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
                    indexes[name] = [dict(index) for index in database[name].list_indexes()]
            text = json_util.dumps(indexes, indent=1, json_options=json_util.CANONICAL_JSON_OPTIONS)
            (target / "indexes.json").write_text(text + "\n")

        asyncio.run(write("mongodb", server.url, dump))
    finally:
        server.remove()


if __name__ == "__main__":
    if (__version__, HEAD) != ("0.1.0", "0004"):
        raise SystemExit("a later version writes other databases: see the first lines of this file")
    write_sqlite()
    write_postgresql()
    write_mongodb()
