"""Every read names a damaged document, with every kind of client."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from bson import Int64, ObjectId, encode
from bson.datetime_ms import DatetimeMS
from bson.raw_bson import RawBSONDocument
from motor.motor_asyncio import AsyncIOMotorClient
from pydantic_ai.conversation import Conversation
from pymongo import MongoClient

from firefly_memory import (
    ConversationMemory,
    CorruptDataError,
    InMemoryStore,
    MemoryEntry,
    MongoDBStore,
)
from firefly_memory.agents import MongoConversationStore
from firefly_memory.archive import async_export_jsonl
from firefly_memory.copying import async_copy_store
from tests.support.agent_histories import messages
from tests.support.backends import Place

EXPIRY = datetime(2999, 1, 1, 1, 1, 1, 123_456, UTC)

TOO_LATE = DatetimeMS(2**60)
NOT_UTF_8 = "these are no characters"

ENTRY: dict[str, list[Any]] = {
    "entry_id": [[], 7, NOT_UTF_8],
    "scope": ["nowhere", 7],
    "content": [ObjectId(), {"~int": "zz"}, NOT_UTF_8],
    "metadata": [[], None],
    "created_at": ["2024", 7, TOO_LATE],
    "expires_at": [TOO_LATE],
    "expires_at_us": [Int64(2**62)],
    "importance": ["7", 7],
}
TURN: dict[str, list[Any]] = {
    "tokens": [[], True, -1, 1.5, "1"],
    "idempotency_key": [7, []],
    "user_prompt": [7, NOT_UTF_8],
    "assistant_response": [[]],
    "messages": [7, NOT_UTF_8],
    "metadata": [7, None],
    "created_at": ["2024", TOO_LATE],
    "created_at_us": [Int64(2**62)],
}
CONVERSATION: dict[str, list[Any]] = {
    "summary": [7, TOO_LATE, NOT_UTF_8],
    "evicted_turns": [[], 0.5, -1],
    "created_at": ["2024", TOO_LATE],
    "place": [7, "nowhere"],
    "life": [7, "text"],
}
CONVERSATION_OF_PYDANTIC_AI: dict[str, list[Any]] = {
    "revision": [7],
    "head_id": [7],
    "branches": [7, [7]],
    "usage": [7, NOT_UTF_8],
    "updated_at": ["2024", TOO_LATE],
    "updated_at_us": [Int64(2**62)],
    "chain": [7, {}, "text"],
}
MESSAGE: dict[str, list[Any]] = {"message": [7, None, NOT_UTF_8], "kind": [7], "place": ["text", None]}

Read = Callable[[], Awaitable[object]]


class Damaged:
    """A store with one thing of each kind, and whoever damages them."""

    def __init__(self, another: Callable[[], MongoDBStore], database: Any) -> None:
        self.another = another  # store, which remembers nothing
        self.store = another()
        self.memory = ConversationMemory(store=self.store)
        self.conversations = MongoConversationStore(self.store)
        self._database = database

    async def fill(self) -> None:
        entry = MemoryEntry(entry_id="it", key="k", expires_at=EXPIRY)
        await self.store.async_save("n", entry)
        await self.memory.async_add_turn("c", "prompt", "response", [])
        await self.conversations.save(Conversation(conversation_id="d", messages=messages(1)))

    async def each(self, collection: str, wanted: dict[str, Any], fields: dict[str, list[Any]], *reads: Read) -> None:
        """Whatever is put into a field of the document, everything that reads it says so."""
        documents = self._database[collection]
        whole = documents.find_one(wanted)
        for field, values in fields.items():
            for value in [*values, _MISSING]:
                damaged = {name: each for name, each in {**whole, field: value}.items() if each is not _MISSING}
                raw = encode(damaged).replace(NOT_UTF_8.encode(), NOT_UTF_8.encode().replace(b"no", b"\xff\xfe"))
                if value is _MISSING and field in _OPTIONAL:
                    continue
                instead = {"q": {"_id": whole["_id"]}, "u": RawBSONDocument(raw)}  # which PyMongo does not look into
                assert self._database.command("update", collection, updates=[instead])["n"] == 1
                for read in reads:
                    with pytest.raises(CorruptDataError, match="is damaged"):
                        await read()
                        pytest.fail(f"{field} of {collection} was {value!r}")
        documents.replace_one({"_id": whole["_id"]}, whole)

    def set(self, collection: str, wanted: dict[str, Any], **fields: Any) -> None:
        assert self._database[collection].update_one(wanted, {"$set": fields}).modified_count == 1

    def take(self, collection: str, wanted: dict[str, Any]) -> dict[str, Any]:
        document: dict[str, Any] = self._database[collection].find_one_and_delete(wanted)
        return document

    def put(self, collection: str, *documents: dict[str, Any]) -> None:
        self._database[collection].insert_many(documents)

    async def export(self) -> None:
        await async_export_jsonl(self.store, io.StringIO())

    async def copy(self) -> None:
        await async_copy_store(self.store, InMemoryStore(), agent_history=False)


_MISSING = object()
_OPTIONAL = {"idempotency_key", "created_at_us", "updated_at_us", "expires_at", "expires_at_us", "summary", "place"}


@pytest.fixture(params=["url", "motor"])
async def damaged(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[Damaged]:
    name = f"damage_{uuid4().hex[:12]}"
    motor: Any = AsyncIOMotorClient(place.mongodb()) if request.param == "motor" else None
    where: dict[str, Any] = {"client": motor} if motor else {"url": place.mongodb()}
    with MongoClient[dict[str, Any]](place.mongodb()) as client:
        it = Damaged(lambda: MongoDBStore(**where, database=name), client[name])
        async with it.store:
            await it.fill()
            yield it
        client.drop_database(name)
    if motor:
        motor.close()


async def test_damaged_entries_are_named(damaged: Damaged) -> None:
    store = damaged.store

    async def blocking() -> None:
        store.load("n")

    by_key = [lambda: store.async_load_by_key("n", "k"), lambda: store.async_load_page("n")]
    await damaged.each(
        "entries", {}, ENTRY, lambda: store.async_load("n"), *by_key, blocking, damaged.export, damaged.copy
    )


async def test_damaged_turns_are_named(damaged: Damaged) -> None:
    memory = damaged.memory

    async def blocking() -> None:
        memory.get_turns("c")

    reads: list[Read] = [lambda: memory.async_get_turns("c"), lambda: memory.async_get_window("c"), blocking]
    await damaged.each("memory_conversations", {"turn_id": 0}, TURN, *reads, damaged.export, damaged.copy)


async def test_counts_written_as_doubles_by_a_shell_are_accepted(damaged: Damaged) -> None:
    memory = damaged.memory
    (turn,) = await memory.async_get_turns("c")
    damaged.set(
        "memory_conversations", {"turn_id": 0}, turn_id=0.0, tokens=float(turn.token_estimate), tokens_before=0.0
    )
    assert await memory.async_get_turns("c") == [turn]
    assert (await memory.async_add_turn("c", "p", "a")).turn_id == 1
    (info,) = await memory.async_list_conversations()
    assert (info.turns, type(info.total_tokens)) == (2, int)


async def test_a_token_sum_beyond_64_bits_is_damage(damaged: Damaged) -> None:
    damaged.set("memory_conversations", {"turn_id": 0}, tokens_before=Int64(2**63 - 1))
    async with damaged.another() as store:
        memory = ConversationMemory(store=store)
        calls = memory.async_get_window("c"), memory.async_get_total_tokens("c"), memory.async_add_turn("c", "p", "a")
        for call in calls:
            with pytest.raises(CorruptDataError, match=r"conversation 'c'.*64 bits"):
                await call
        assert len(await memory.async_get_turns("c")) == 1


async def test_a_turn_is_refused_if_the_token_sum_would_exceed_64_bits(damaged: Damaged) -> None:
    (turn,) = await damaged.memory.async_get_turns("c")
    most = 2**63 - 1 - turn.token_estimate
    damaged.set("memory_conversations", {"turn_id": 0}, tokens_before=Int64(most))
    async with damaged.another() as store:
        memory = ConversationMemory(store=store)
        assert await memory.async_get_total_tokens("c") == 2**63 - 1
        with pytest.raises(CorruptDataError, match=r"conversation 'c'.*64 bits"):
            await memory.async_add_turn("c", "prompt", "response")
        assert await memory.async_get_turns("c") == [turn]


async def test_a_conversation_with_different_ids_in_its_fields_is_damage(damaged: Damaged) -> None:
    memory = damaged.memory
    damaged.set("memory_conversations", {"_id": "c"}, conversation_id="another")
    for write in (memory.async_add_turn("c", "p", "a"), memory.async_new_conversation("c")):
        with pytest.raises(CorruptDataError, match="conversation 'c'"):
            await asyncio.wait_for(write, 5)


async def test_damaged_conversations_are_named(damaged: Damaged) -> None:
    memory = damaged.memory
    reads: list[Read] = [
        lambda: memory.async_get_window("c"),
        lambda: ConversationMemory(store=damaged.store).async_get_summary("c"),
        lambda: memory.async_export_conversation("c"),
        lambda: memory.async_fork_conversation("c"),
    ]
    await damaged.each("memory_conversations", {"_id": "c"}, CONVERSATION, *reads, damaged.export, damaged.copy)


async def test_damaged_agent_history_is_named(damaged: Damaged) -> None:
    conversations = damaged.conversations
    record = await conversations.read_record("d")
    assert record is not None

    async def write() -> None:
        await conversations.write_record(record, expected_revision=record.revision)

    no_chain = {name: values for name, values in CONVERSATION_OF_PYDANTIC_AI.items() if name != "chain"}
    reads: list[Read] = [lambda: conversations.load("d"), conversations.read_records, damaged.export]
    await damaged.each("memory_agent_history", {"_id": "d"}, no_chain, *reads)
    await damaged.each("memory_agent_history", {"_id": "d"}, {"chain": CONVERSATION_OF_PYDANTIC_AI["chain"]}, write)


async def test_a_message_whose_id_is_not_a_text_counts_as_missing(damaged: Damaged) -> None:
    await damaged.conversations.save(Conversation(conversation_id="two", messages=messages(2)))
    last = damaged.take("memory_agent_history_entries", {"parent_id": {"$ne": None}})
    first = damaged.take("memory_agent_history_entries", {"_id": last["parent_id"]})
    damaged.put("memory_agent_history_entries", last, {**first, "_id": {"a": "b"}})
    with pytest.raises(CorruptDataError, match=r"is damaged.* is missing"):
        await damaged.export()


async def test_damaged_messages_are_named(damaged: Damaged) -> None:
    conversations = damaged.conversations
    reads: list[Read] = [lambda: conversations.load("d"), lambda: conversations.load("d", limit=5), damaged.export]
    await damaged.each("memory_agent_history_entries", {}, MESSAGE, *reads)
