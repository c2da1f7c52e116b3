"""The stores of pydantic-ai's conversations: values, refusals, backends and transactions."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
)
from pydantic_ai.messages import BinaryContent, ModelRequest, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage
from pymongo import MongoClient
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import (
    ConfigurationError,
    CorruptDataError,
    DatabaseConnectionError,
    DatabaseStoreError,
    FileStore,
    InMemoryStore,
    InvalidEntryError,
    MongoDBStore,
    OutcomeUnknownError,
    PostgreSQLStore,
    SchemaMismatchError,
    SQLiteStore,
    StoreClosedError,
)
from firefly_memory.agent_history.sql.operations import write_unless_written
from firefly_memory.agents import MongoConversationStore, SQLConversationStore
from firefly_memory.agents.conversation_stores import _stored_entry, _stored_record
from firefly_memory.databases.sql.operation import REPEAT, operation
from tests.support.agent_histories import KINDS, Stored, kept, message, messages, opened, somewhere
from tests.support.backends import Place
from tests.support.databases import execute
from tests.support.pydantic_ai_messages import EVERYTHING
from tests.support.servers import EmbeddedMongoDB, free_port


@pytest.mark.parametrize("kind", KINDS)
async def test_everything_comes_back_equal(kind: str, place: Place) -> None:
    call = ToolCallPart("pay", {"to": "Zürich", "pair": (1, b"\xff")}, tool_call_id="call 3")
    when = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=5)))
    with somewhere(kind, place) as where:
        async with opened(kind, where) as conversations:
            whole = Conversation(
                conversation_id="whole\x00",
                messages=list(EVERYTHING),
                usage=RunUsage(requests=2, input_tokens=3, cache_read_tokens=1, details={"reasoning": 5}),
                deferred_tool_requests=DeferredToolRequests(approvals=[call], metadata={"call 3": {"why": b"AAAA"}}),
            )
            entries = await conversations.save(whole, scope="user\x00")
            found = await conversations.load("whole\x00", scope="user\x00")
            assert found == whole
            assert found.messages == EVERYTHING
            assert await conversations.load_entries("whole\x00", limit=2) == entries[-2:]
            record = ConversationRecord(
                conversation_id="raw",
                head_id=entries[1].id,
                forked_from="whole\x00",
                forked_at=entries[0].id,
                branches=[entries[0].id],
                revision="\ud800",
                updated_at=when,
            )
            await conversations.write_record(record, expected_revision=None)
            assert await conversations.read_record("raw") == record
            assert [each.conversation_id for each in await conversations.list_conversations()] == ["whole\x00", "raw"]
        async with opened(kind, where) as conversations:
            assert await conversations.load("whole\x00") == whole
            await conversations.delete("whole\x00")
            assert set(await kept(conversations)) == {entries[0].id, entries[1].id}
            await conversations.delete("raw")
            assert await kept(conversations) == {}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql-asyncpg", "mongodb"])
async def test_a_refused_write_leaves_nothing_behind(kind: str, place: Place) -> None:
    first = ConversationEntry(parent_id=None, message=message(1))
    record = ConversationRecord(conversation_id="a", head_id=first.id)
    naive = record.updated_at.replace(tzinfo=None)
    surrogates = [message("\ud800")]
    with somewhere(kind, place) as where:
        async with opened(kind, where) as conversations:
            for change, path in (
                ({"conversation_id": ""}, "conversation_id"),
                ({"conversation_id": "x" * 513}, "conversation_id"),
                ({"scope": "x" * 513}, "scope"),
                ({"updated_at": naive}, "updated_at"),
            ):
                changed: Any = dataclasses.replace(record, **change)
                with pytest.raises(InvalidEntryError, match=path):
                    await conversations.write_record(changed, new_entries=[first], expected_revision=None)
            with pytest.raises(InvalidEntryError, match=r"message\.parts\[0\]\.content.*surrogates"):
                await conversations.save(Conversation(messages=surrogates))
            half = DeferredToolRequests(metadata={"call 3": {"\ud800": 1}})
            with pytest.raises(InvalidEntryError, match=r"deferred_tool_requests\.metadata\['call 3'\]: the key"):
                await conversations.save(Conversation(messages=[message(1)], deferred_tool_requests=half))
            # An entry that is there is never replaced: others may have it in their history.
            await conversations.write_record(record, new_entries=[first], expected_revision=None)
            other = dataclasses.replace(first, message=message(2))
            again = dataclasses.replace(record, conversation_id="b")
            with pytest.raises(ConversationConflict):
                await conversations.write_record(again, new_entries=[other], expected_revision=None)
            assert await conversations.read_record("b") is None
            assert await conversations.read_history(first.id) == [first]
            assert await conversations.read_history(first.id, limit=-1) == []
            assert await kept(conversations) == {first.id: (None, 1)}
            with pytest.raises(KeyError, match="nobody"):
                await conversations.read_entry("nobody")
            assert await conversations.read_record("x" * 10_000) is None
        with pytest.raises(StoreClosedError):
            await conversations.list_conversations()


async def test_damaged_rows_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with SQLiteStore(path) as store:
        conversations = SQLConversationStore(store)
        await conversations.save(Conversation(conversation_id="a", messages=messages(1)))
        execute(f"sqlite:///{path}", "UPDATE memory_agent_history_entries SET message = '{}'")
        with pytest.raises(CorruptDataError, match="history of entry"):
            await conversations.load("a")
        execute(f"sqlite:///{path}", "UPDATE memory_agent_history SET format_version = 2")
        with pytest.raises(DatabaseStoreError, match="format 2, of a newer version"):
            await conversations.load("a")


async def test_an_unreachable_server_is_reported() -> None:
    async def call(conversations: Stored) -> None:
        with pytest.raises(DatabaseConnectionError):
            await conversations.load("a")
        await conversations.store.close()

    nowhere = free_port()
    await call(SQLConversationStore(PostgreSQLStore(f"postgresql://u@localhost:{nowhere}/d", timeout=2)))
    await call(MongoConversationStore(MongoDBStore(f"mongodb://localhost:{nowhere}/", timeout=0.5)))


def test_stores_of_other_backends_are_refused(tmp_path: Path) -> None:
    for store in (InMemoryStore(), FileStore(tmp_path)):
        for kind in (SQLConversationStore, MongoConversationStore):
            with pytest.raises(ConfigurationError, match=r"SQLiteStore and PostgreSQLStore .* and in MongoDBStore"):
                kind(store)
    with pytest.raises(ConfigurationError, match="needs a MongoDBStore, not SQLiteStore"):
        MongoConversationStore(SQLiteStore(tmp_path / "a.db"))


async def test_a_save_joins_the_callers_transaction(place: Place) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{place.directory}/own.db")
    async with SQLiteStore(engine=engine) as store:
        for commit in (False, True):
            async with engine.connect() as connection:
                conversations = SQLConversationStore(store.bind(connection))
                conversation = Conversation(conversation_id="a", messages=messages(2))
                await conversations.save(conversation)
                with pytest.raises(ConversationConflict):
                    await conversations.save(Conversation(conversation_id="a"))
                await (connection.commit() if commit else connection.rollback())
            assert (await SQLConversationStore(store).load("a") is not None) == commit
    await engine.dispose()


async def test_a_standalone_mongod_keeps_entries_and_loads_whole_conversations() -> None:
    server = EmbeddedMongoDB(replica_set=False)
    server.start()
    try:
        async with MongoDBStore(server.url) as store:
            conversations = MongoConversationStore(store)
            first, second = (Conversation(conversation_id="a", messages=messages(3, n)) for n in (0, 10))
            saved = await asyncio.gather(conversations.save(first), conversations.save(second), return_exceptions=True)
            assert sum(isinstance(each, ConversationConflict) for each in saved) == 1
            winner = second if isinstance(saved[0], ConversationConflict) else first
            fork = await conversations.fork("a", at=2, new_conversation_id="b")
            winner.messages.append(message(99))
            await conversations.save(winner)
            await conversations.branch("a", at=1, expected_revision=winner.revision)
            await conversations.delete("a")
            assert await conversations.load("a") is None
            assert await conversations.load("b") == fork
            with pytest.raises(ConversationConflict):
                await conversations.write_record(
                    ConversationRecord(conversation_id="c", head_id="nobody"), expected_revision=None
                )
            assert await conversations.read_record("c") is None
    finally:
        server.remove()


async def test_missing_indexes_are_named(place: Place) -> None:
    store = MongoDBStore(place.mongodb(), database=f"history_{uuid4().hex[:12]}", migrate=False)
    with pytest.raises(
        SchemaMismatchError, match=r"memory_agent_history.*memory_agent_history_entries\.chain_1_place_1"
    ):
        await MongoConversationStore(store).load("a")
    await store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql-asyncpg"])
async def test_a_repeated_write_is_recognised(kind: str, place: Place) -> None:
    with somewhere(kind, place) as where:
        async with opened(kind, where) as conversations:
            assert isinstance(conversations, SQLConversationStore)
            entry = ConversationEntry(parent_id=None, message=message(1))
            record = ConversationRecord(conversation_id="a", head_id=entry.id)
            run = conversations.store.database.suspending.run
            settle = operation(on_lost_reply=REPEAT)(write_unless_written)
            entries = [_stored_entry(entry)]
            assert await run(settle, _stored_record(record), entries, None), "it was not done yet"
            assert await run(settle, _stored_record(record), entries, None), "it was this one"
            other = dataclasses.replace(record, revision="x")
            assert not await run(
                settle,
                _stored_record(other),
                [_stored_entry(ConversationEntry(parent_id=None, message=message(2)))],
                None,
            )
            with pytest.raises(OutcomeUnknownError, match="read before you write again"):
                await run(settle, _stored_record(other), entries, None)
            assert await conversations.read_record("a") == record
            assert await kept(conversations) == {entry.id: (None, 1)}


async def test_a_blocking_mongo_client_is_accepted(place: Place) -> None:
    with MongoClient[dict[str, Any]](place.mongodb()) as client:
        conversations = MongoConversationStore(MongoDBStore(client=client, database=f"history_{uuid4().hex[:12]}"))
        said = messages(2)
        await conversations.save(Conversation(conversation_id="a", messages=said))
        loaded = await conversations.load("a")
        assert loaded is not None
        assert loaded.messages == said


async def test_damaged_documents_of_mongodb_are_reported(place: Place) -> None:
    name = f"history_{uuid4().hex[:12]}"
    async with MongoDBStore(place.mongodb(), database=name) as store:
        conversations = MongoConversationStore(store)
        await conversations.save(Conversation(conversation_id="a", messages=messages(1)))
        with MongoClient[dict[str, Any]](place.mongodb()) as client:
            loaded = await conversations.load("a")
            assert loaded is not None
            loaded.messages = messages(2)
            client[name].memory_agent_history.update_many({}, {"$set": {"chain": {}}})
            with pytest.raises(CorruptDataError, match="conversation 'a' is damaged"):
                await conversations.save(loaded)
            client[name].memory_agent_history_entries.update_many({}, {"$unset": {"message": ""}})
            with pytest.raises(CorruptDataError, match=r"entry '.*is damaged"):
                await conversations.load("a")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_repeated_save_adds_only_new_messages(kind: str, place: Place) -> None:
    """Pictures, bytes and tuples come back equal: a message that did not would be another one, and a branch."""
    picture = BinaryContent(b"\x89PNG", media_type="image/png")
    parts: list[Any] = [UserPromptPart(("look", picture)), ToolReturnPart("t", {"raw": b"\xff"}, tool_call_id="1")]
    said = [ModelRequest(parts=[part]) for part in parts]
    with somewhere(kind, place) as where:
        async with opened(kind, where) as conversations:
            conversation = Conversation(conversation_id=uuid4().hex, messages=list(said))
            await conversations.save(conversation)
            loaded = await conversations.load(conversation.conversation_id)
            assert loaded is not None
            assert loaded.messages == said
            loaded.messages = [*said, message(9)]
            await conversations.save(loaded)
            record = await conversations.read_record(conversation.conversation_id)
            assert record is not None
            assert record.branches == []
            assert len(await conversations.read_history(record.head_id)) == 3
