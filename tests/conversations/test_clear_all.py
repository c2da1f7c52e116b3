"""``clear_all()`` is one call, all or nothing if the store can do that, also during concurrent appends."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from pymongo import MongoClient, monitoring
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import (
    ConversationMemory,
    DatabaseStoreError,
    EntryStore,
    FileStore,
    InMemoryStore,
    MemoryEntry,
    MemoryManager,
    MongoDBStore,
    OutcomeUnknownError,
    PostgreSQLStore,
    SQLiteStore,
    adapt,
)
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.mongodb import deletion
from firefly_memory.conversations.mongodb.documents import CONVERSATIONS
from firefly_memory.databases.sql.session import DriverSession
from tests.support.backends import Place
from tests.support.folder_backend import FolderStore

pytestmark = pytest.mark.thorough

COUNT = 12


async def fill(memory: ConversationMemory, count: int = COUNT) -> list[str]:
    ids = [f"c {number}" for number in range(count)]
    for conversation_id in ids:
        for prompt in ("one", "two"):
            await memory.async_add_turn(conversation_id, prompt, "")
    return ids


async def is_all_there(memory: ConversationMemory, ids: list[str]) -> bool:
    turns = [len(await memory.async_get_turns(conversation_id)) for conversation_id in ids]
    return await memory.async_conversation_ids() == ids and turns == [2] * len(ids)


async def forgets(store: EntryStore) -> None:
    manager, other = MemoryManager(store=store), MemoryManager(store=store, working_scope_id="other")
    memory = manager.conversation
    ids = await fill(memory, 3)
    await manager.async_set_fact("k", 1)
    await other.async_set_fact("k", 2)
    await manager.async_clear_all()
    assert await memory.async_conversation_ids() == []
    assert [await memory.async_get_turns(each) for each in ids] == [[]] * 3
    assert (await manager.async_get_fact("k"), await other.async_get_fact("k")) == (None, 2)
    assert (await memory.async_add_turn("c 1", "again", "")).turn_id == 0
    await store.async_save("n", MemoryEntry(content="kept"))
    await memory.async_clear_all()
    assert await memory.async_conversation_ids() == []
    assert [entry.content for entry in await store.async_load("n")] == ["kept"]
    assert await other.async_get_fact("k") == 2


async def test_clear_all_deletes_every_conversation_and_the_facts_of_its_scope(store: EntryStore) -> None:
    await forgets(store)


async def test_clear_all_works_in_files_and_in_custom_stores(place: Place) -> None:
    for store in (FileStore(place.directory / "files"), adapt(FolderStore(place.directory / "five"))):
        async with store:
            await forgets(store)


def test_clear_all_has_a_blocking_form(place: Place) -> None:
    with SQLiteStore(place.directory / "memory.db") as store:
        manager = MemoryManager(store=store)
        manager.add_turn("c", "hello", "hi")
        manager.set_fact("k", 1)
        before = manager.working.writes
        manager.clear_all()
        assert (manager.conversation.conversation_ids, manager.get_fact("k")) == ([], None)
        assert manager.working.writes == before + 1, "an agent that runs shows its model no facts that are gone"
        manager.add_turn("c", "hello", "hi")
        manager.conversation.clear_all()
        assert manager.conversation.conversation_ids == []


async def _trips_of_sql(store: EntryStore, count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    memory, trips = ConversationMemory(store=store), 0
    await fill(memory, count)
    real = DriverSession._cursor

    def counted(session: Any) -> Any:
        nonlocal trips
        trips += 1
        return real(session)

    with monkeypatch.context() as patch:
        patch.setattr(DriverSession, "_cursor", counted)
        await memory.async_clear_all()
    return trips


async def test_the_number_of_sql_statements_does_not_grow_with_the_conversations(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"clear_{uuid4().hex[:8]}"
    async with (
        SQLiteStore(place.directory / "memory.db") as sqlite,
        PostgreSQLStore(place.postgresql(), schema_name=name) as postgresql,
    ):
        for store in (sqlite, postgresql):
            few = await _trips_of_sql(store, 1, monkeypatch)
            assert await _trips_of_sql(store, COUNT, monkeypatch) == few <= 6
    await asyncio.to_thread(_drop_schema, place, name)


def _drop_schema(place: Place, name: str) -> None:
    with psycopg.connect(place.postgresql(), autocommit=True) as server:
        server.execute(f"DROP SCHEMA {name} CASCADE".encode())


class Commands(monitoring.CommandListener):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.seen.append(event.command_name)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


def test_the_number_of_mongodb_commands_does_not_grow_with_the_conversations(place: Place) -> None:
    commands, seen = Commands(), []
    with MongoClient[dict[str, Any]](place.mongodb(), event_listeners=[commands]) as client:
        with MongoDBStore(client=client, database="clear_commands") as store:
            memory = ConversationMemory(store=store)
            for count in (1, COUNT):
                asyncio.run(fill(memory, count))
                commands.seen.clear()
                memory.clear_all()
                seen.append(commands.seen.copy())
        client.drop_database("clear_commands")
    assert seen[0] == seen[1]
    assert len(seen[0]) <= 9


# When it fails

REFUSED = "CREATE TRIGGER refuses BEFORE DELETE ON memory_conversations WHEN old.conversation_id = 'c 7' BEGIN SELECT RAISE(ABORT, 'refused'); END"
REFUSES = """CREATE FUNCTION {s}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
    CREATE TRIGGER refuses BEFORE DELETE ON {s}.memory_conversations FOR EACH ROW
    WHEN (old.conversation_id = 'c 7') EXECUTE FUNCTION {s}.refuse()"""


async def _all_or_nothing(store: EntryStore, refuse: Callable[[], object]) -> None:
    manager = MemoryManager(store=store)
    ids = await fill(manager.conversation)
    await manager.async_set_fact("k", 1)
    await asyncio.to_thread(refuse)
    for clear in (manager.async_clear_all, manager.conversation.async_clear_all):
        with pytest.raises(DatabaseStoreError):
            await clear()
        assert await is_all_there(manager.conversation, ids)
        assert await manager.async_get_fact("k") == 1


async def test_on_sqlite_it_is_all_or_nothing(place: Place) -> None:
    path = place.directory / "memory.db"

    def refuse() -> None:
        with sqlite3.connect(path) as connection:
            connection.execute(REFUSED)
        connection.close()

    async with SQLiteStore(path) as store:
        await _all_or_nothing(store, refuse)


async def test_on_postgresql_it_is_all_or_nothing(place: Place) -> None:
    name = f"clear_{uuid4().hex[:8]}"

    def refuse() -> None:
        with psycopg.connect(place.postgresql(), autocommit=True) as server:
            server.execute(REFUSES.format(s=name).encode())

    async with PostgreSQLStore(place.postgresql(), schema_name=name) as store:
        await _all_or_nothing(store, refuse)
    await asyncio.to_thread(_drop_schema, place, name)


async def test_on_mongodb_it_is_all_or_nothing(place: Place) -> None:
    with MongoClient[dict[str, Any]](place.mongodb()) as client, client.start_session() as session:
        database = client["clear_atomic"]

        def refuse() -> None:
            """Somebody's transaction that has a conversation, and does not end."""
            session.start_transaction()
            database.memory_conversations.update_one({"_id": "c 7"}, {"$set": {"other": 1}}, session=session)

        async with MongoDBStore(place.mongodb(), database="clear_atomic") as store:
            store.database.timeout = 0.2  # for transactions that are in somebody's way
            await _all_or_nothing(store, refuse)
            session.abort_transaction()
            await ConversationMemory(store=store).async_clear_all()
            assert await asyncio.to_thread(database.memory_conversations.count_documents, {}) == 0
        client.drop_database("clear_atomic")


async def test_a_rollback_of_the_callers_transaction_undoes_clear_all(place: Place) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{place.directory}/memory.db")
    async with SQLiteStore(engine=engine) as store:
        memory = ConversationMemory(store=store)
        ids = await fill(memory, 3)
        for commits in (False, True):
            async with engine.connect() as connection:
                bound = ConversationMemory(store=store.bind(connection))
                await bound.async_clear_all()
                assert await bound.async_conversation_ids() == []
                await (connection.commit() if commits else connection.rollback())
            assert await is_all_there(memory, [] if commits else ids)
    await engine.dispose()


# On MongoDB, step by step


@pytest.fixture
async def mongodb(place: Place) -> AsyncIterator[MongoDBStore]:
    async with MongoDBStore(place.mongodb(), database="clear_steps") as store:
        yield store
        await store.database.suspending().client.drop_database("clear_steps")


@pytest.mark.parametrize("has_transactions", [True, False])
async def test_many_conversations_are_deleted_in_steps(
    has_transactions: bool, mongodb: MongoDBStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "MOST_AT_ONCE", 5)
    monkeypatch.setattr(deletion, "_PARTS_AT_ONCE", 3)
    mongodb.database.has_transactions = has_transactions
    await forgets(mongodb)
    memory = ConversationMemory(store=mongodb)
    await fill(memory)
    await memory.async_new_conversation("empty")
    await memory.async_clear_all()
    assert await mongodb.database.suspending()[CONVERSATIONS].count_documents({}) == 0


async def test_turns_that_a_dead_process_left_are_deleted_too(mongodb: MongoDBStore) -> None:
    memory, conversations = ConversationMemory(store=mongodb), mongodb.database.suspending()[CONVERSATIONS]
    ids = await fill(memory, 3)
    await conversations.delete_one({"_id": ids[1]})
    await memory.async_clear_all()
    assert await conversations.count_documents({}) == 0


async def test_damaged_turns_are_deleted_too(mongodb: MongoDBStore) -> None:
    memory, conversations = ConversationMemory(store=mongodb), mongodb.database.suspending()[CONVERSATIONS]
    damaged: list[dict[str, Any]] = [{"life": {"a": 1}}, {"life": 5}, {}]
    for turn_id, fields in enumerate(damaged):
        await conversations.insert_one({"_id": {"turn": f"no name {turn_id}"}, "turn_id": turn_id, **fields})
        itself = {"conversation_id": "c", "turn_id": turn_id, **fields}
        await conversations.insert_one({"_id": {"turn": f"named {turn_id}"}, **itself})
        await conversations.insert_one({**itself, "_id": {"turn": f"odd {turn_id}"}, "conversation_id": {"a": 1}})
    await memory.async_add_turn("c", "", "")
    await memory.async_clear("c")
    assert await conversations.count_documents({"conversation_id": "c", "life": {"$exists": True}}) == 0
    await memory.async_clear_all()
    assert await conversations.count_documents({}) == 0


async def test_a_clear_all_that_fails_half_way_raises_outcome_unknown(place: Place) -> None:
    with MongoClient[dict[str, Any]](place.mongodb()) as client, client.start_session() as session:
        conversations = client["clear_half"].memory_conversations
        async with (
            MongoDBStore(place.mongodb(), database="clear_half") as waiting,
            MongoDBStore(place.mongodb(), database="clear_half", timeout=1.5) as store,
        ):
            await fill(ConversationMemory(store=waiting), 2)
            memory = ConversationMemory(store=store)
            session.start_transaction()
            conversations.update_one({"turn_id": 1}, {"$set": {"of": "another"}}, session=session)
            with pytest.raises(OutcomeUnknownError):
                await memory.async_clear_all()
            assert await memory.async_conversation_ids() == []
            session.abort_transaction()
            await memory.async_clear_all()
            assert await asyncio.to_thread(conversations.count_documents, {}) == 0
        client.drop_database("clear_half")


# While others append


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mongodb"])
async def test_concurrent_appends_happen_before_or_after_clear_all(kind: str, place: Place) -> None:
    name = f"clear_{uuid4().hex[:8]}"
    stores: list[EntryStore] = []
    for _ in range(2):
        match kind:
            case "sqlite":
                stores.append(SQLiteStore(place.directory / "memory.db"))
            case "postgresql":
                stores.append(PostgreSQLStore(place.postgresql(), schema_name=name))
            case _:
                stores.append(MongoDBStore(place.mongodb(), database=name))
    async with stores[0] as one, stores[1] as other:
        clearing, appending = ConversationMemory(store=one), ConversationMemory(store=other)
        done = asyncio.Event()

        async def append(task: int) -> None:
            for number in range(40):
                for conversation_id in ("shared", f"own {task} {number}", f"of {task}"):
                    await appending.async_add_turn(conversation_id, f"{task} {number}", "")

        async def clear() -> None:
            while not done.is_set():
                await clearing.async_clear_all()

        async with asyncio.TaskGroup() as tasks:
            clears = tasks.create_task(clear())
            await asyncio.gather(*[append(task) for task in range(4)])
            done.set()
            await clears
        await appending.async_add_turn("last", "", "")
        for conversation in await clearing.async_list_conversations(limit=1_000):
            turns = await clearing.async_get_turns(conversation.conversation_id)
            assert [turn.turn_id for turn in turns] == list(range(conversation.turns))
            assert sum(turn.token_estimate for turn in turns) == conversation.total_tokens
            assert conversation.turns
        await clearing.async_clear_all()
        assert await clearing.async_conversation_ids() == []
        if isinstance(one, MongoDBStore):
            connection = one.database.suspending()
            assert await connection[CONVERSATIONS].count_documents({}) == 0
            await connection.client.drop_database(name)
    if kind == "postgresql":
        await asyncio.to_thread(_drop_schema, place, name)


@pytest.mark.parametrize("act", ["import", "summarize"])
def test_clearing_a_conversation_ends_its_summary_without_an_error(
    act: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its summary is over: nobody waits for turns that never come, and nothing is said to have failed."""
    memory = ConversationMemory(store=InMemoryStore(), summarize_threshold=30, summarizer=lambda _: "short")
    for _ in range(8):
        memory.add_turn("c", "some words to remember", "some words more", summarize=act == "import")
    data = memory.export_conversation("c")
    log = type(memory.store.blocking.log(CONVERSATION_LOG))
    real = log.turns

    async def cleared_before(self: Any, conversation_id: str, after: int, limit: int | None) -> Any:
        await self.delete(conversation_id)
        return await real(self, conversation_id, after, limit)

    monkeypatch.setattr(log, "turns", cleared_before)
    if act == "import":
        memory.import_conversation(data, "other")
    else:
        memory.summarize("c")
    assert caplog.text == ""
    assert memory.conversation_ids in (["c"], [])
