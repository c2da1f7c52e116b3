"""Late writes are refused in SQL, whichever way the store reaches its database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import (
    ABSENT,
    ConversationMemory,
    EntryOwnershipError,
    ErasedError,
    MemoryEntry,
    NotSupportedError,
    PostgreSQLStore,
    SQLiteStore,
    WorkingMemory,
    clock,
)
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG, HistoryEntry, HistoryRecord
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.entries.scopes import stored_facts_of
from firefly_memory.stores.sql import SQLStore
from firefly_memory.tombstones.log import (
    TOMBSTONES,
    Identity,
    conversation_identity,
    history_identity,
    namespace_identity,
    owner_identity,
)
from tests.support.backends import Place

KINDS = ["sqlite", "asyncpg", "psycopg", "aiosqlite-engine", "psycopg-engine", "asyncpg-engine-repeatable"]

MOMENT = datetime(2024, 5, 6, tzinfo=UTC)


@asynccontextmanager
async def opened(kind: str, place: Place) -> AsyncIterator[SQLStore]:
    """A store. Tests share its database, and have names of their own."""
    driver, _, rest = kind.partition("-")
    if kind == "sqlite":
        async with SQLiteStore(place.directory / "memory.db") as store:
            yield store
    elif not rest:
        async with PostgreSQLStore(place.with_driver(driver)) as server:
            yield server
    else:
        options: dict[str, Any] = {"isolation_level": "REPEATABLE READ"} if "repeatable" in rest else {}
        lite = driver == "aiosqlite"
        url = f"sqlite+aiosqlite:///{place.directory}/own.db" if lite else place.with_driver(driver)
        engine = create_async_engine(url, **options)
        async with SQLiteStore(engine=engine) if lite else PostgreSQLStore(engine=engine) as own:
            yield own
        await engine.dispose()


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[SQLStore]:
    async with opened(request.param, place) as store:
        yield store


@pytest.fixture
def ann() -> str:
    return f"ann {uuid4().hex}"


async def refuse(store: SQLStore, owner: str, *identities: Identity) -> None:
    await store.suspending.log(TOMBSTONES).add([owner_identity(owner), *identities], owner, clock.now())


def history_of(scope: str | None, conversation_id: str, revision: str = "r1") -> HistoryRecord:
    return HistoryRecord(conversation_id, revision, None, scope, None, None, [], "{}", None, MOMENT, 1)


Write = Callable[[SQLStore, str], Awaitable[Any]]


async def create(store: SQLStore, ann: str) -> None:
    await ConversationMemory(store=store).async_new_conversation(f"chat of {ann}")


async def create_for_the_owner(store: SQLStore, ann: str) -> None:
    await ConversationMemory(store=store).async_new_conversation(owner=ann)


async def append(store: SQLStore, ann: str) -> None:
    await ConversationMemory(store=store).async_add_turn(f"chat of {ann}", "p", "a")


async def append_for_the_owner(store: SQLStore, ann: str) -> None:
    await ConversationMemory(store=store).async_add_turn(uuid4().hex, "p", "a", owner=ann, idempotency_key="k")


async def save_a_fact(store: SQLStore, ann: str) -> None:
    await WorkingMemory(store=store, scope_id=ann).async_set("k", "v")


async def save_a_fact_of_the_conversation(store: SQLStore, ann: str) -> None:
    await WorkingMemory(store=store, conversation_id=f"chat of {ann}").async_set("k", "v")


async def save_an_entry(store: SQLStore, ann: str) -> None:
    await store.async_save(f"working:{ann}", MemoryEntry(content=1))


async def save_if_absent(store: SQLStore, ann: str) -> None:
    record = MemoryEntry(content=1)
    await store.suspending.save_if(f"working:{ann}", record, ABSENT)


async def save_if_the_same(store: SQLStore, ann: str) -> None:
    await store.suspending.save_if(f"working:{ann}", MemoryEntry(content=1), 7)


async def save_many(store: SQLStore, ann: str) -> None:
    await store.async_save_many(f"working:{ann}", [MemoryEntry(content=number) for number in range(3)])


async def write_history(store: SQLStore, ann: str) -> None:
    await store.suspending.log(AGENT_HISTORY_LOG).write(history_of(None, f"history of {ann}"), [], None)


async def write_history_of_the_owner(store: SQLStore, ann: str) -> None:
    entry = HistoryEntry(uuid4().hex, None, "request", "{}")
    record = history_of(ann, uuid4().hex)._replace(head_id=entry.entry_id)
    await store.suspending.log(AGENT_HISTORY_LOG).write(record, [entry], None)


WRITES: list[Write] = [
    create,
    create_for_the_owner,
    append,
    append_for_the_owner,
    save_a_fact,
    save_a_fact_of_the_conversation,
    save_an_entry,
    save_if_absent,
    save_if_the_same,
    save_many,
    write_history,
    write_history_of_the_owner,
]


def identities_of(ann: str) -> list[Identity]:
    chat = f"chat of {ann}"
    return [
        conversation_identity(chat),
        namespace_identity(stored_facts_of(chat)),
        namespace_identity(f"working:{ann}"),
        history_identity(f"history of {ann}"),
    ]


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
async def test_a_late_write_is_refused_and_leaves_nothing(store: SQLStore, ann: str, write: Write) -> None:
    await write(store, "bob " + ann)
    await refuse(store, ann, *identities_of(ann))
    with pytest.raises(ErasedError) as error:
        await write(store, ann)
    assert ann not in str(error.value)
    found = dict(await store.suspending.log(TOMBSTONES).find_text(ann))
    assert await store.suspending.log(TOMBSTONES).remove(ann) == 5
    assert not any(found.values()) or found == dict(await store.suspending.log(TOMBSTONES).find_text("bob " + ann))
    await write(store, ann)


async def test_a_fork_is_refused_by_its_id_and_by_the_owner_of_its_source(store: SQLStore, ann: str) -> None:
    memory = ConversationMemory(store=store)
    await memory.async_add_turn(f"chat of {ann}", "p", "a", owner=ann)
    await memory.async_new_conversation(f"empty chat of {ann}", owner=ann)
    await memory.async_add_turn(f"of nobody {ann}", "p", "a")
    await refuse(store, ann, conversation_identity(f"fork {ann}"))
    for source in (f"chat of {ann}", f"empty chat of {ann}"):
        with pytest.raises(ErasedError):
            await memory.async_fork_conversation(source, f"other fork {ann}")
    with pytest.raises(ErasedError):
        await memory.async_fork_conversation(f"of nobody {ann}", f"fork {ann}")
    assert await store.suspending.log(CONVERSATION_LOG).head(f"other fork {ann}") is None
    assert await store.suspending.log(CONVERSATION_LOG).head(f"fork {ann}") is None
    await memory.async_fork_conversation(f"of nobody {ann}", f"third fork {ann}")


async def test_a_history_that_changes_hands_is_refused(store: SQLStore, ann: str) -> None:
    await refuse(store, ann)
    log, name = store.suspending.log(AGENT_HISTORY_LOG), uuid4().hex
    assert await log.write(history_of("bob", name), [], None)
    with pytest.raises(ErasedError):
        await log.write(history_of(ann, name, "r2"), [], "r1")
    there = await log.record(name)
    assert there is not None
    assert (there.revision, there.scope) == ("r1", "bob")
    assert await log.write(history_of("bob", name, "r2"), [], "r1")


async def test_in_a_group_only_the_refused_appends_fail(store: SQLStore, ann: str) -> None:
    memory, refused = ConversationMemory(store=store), f"chat of {ann}"
    await refuse(store, ann, conversation_identity(refused))
    names = [refused if number % 3 == 1 else f"{number} {ann}" for number in range(24)]
    results = await asyncio.gather(
        *[memory.async_add_turn(name, str(number), "a") for number, name in enumerate(names)], return_exceptions=True
    )
    for name, result in zip(names, results, strict=True):
        assert isinstance(result, ErasedError) == (name == refused)
    for name in set(names) - {refused}:
        assert [turn.turn_id for turn in await memory.async_get_turns(name)] == [0]
    assert await store.suspending.log(CONVERSATION_LOG).head(refused) is None


async def test_in_a_group_only_the_refused_entries_fail(store: SQLStore, ann: str) -> None:
    await refuse(store, ann, namespace_identity(f"working:{ann}"))
    for number in range(6):
        await store.async_save(f"somebody {ann}", MemoryEntry(entry_id=f"taken {ann} {number}", content=0))
    namespaces = [f"working:{ann}", f"working:bob {ann}", f"notes {ann}", f"taken {ann}"]
    results = await asyncio.gather(
        *[
            store.async_save(namespace, MemoryEntry(entry_id=f"{namespace} {number}", content=number))
            for number in range(6)
            for namespace in namespaces
        ],
        return_exceptions=True,
    )
    expected = [ErasedError, type(None), type(None), EntryOwnershipError] * 6
    assert [type(result) for result in results] == expected
    assert [await store.async_count(namespace) for namespace in namespaces] == [0, 6, 6, 0]


async def test_retries_and_conflicts_still_have_their_own_answers(store: SQLStore, ann: str) -> None:
    memory = ConversationMemory(store=store)
    first = await memory.async_add_turn(ann, "p", "a", idempotency_key="k")
    again = await memory.async_add_turn(ann, "p", "a", idempotency_key="k")
    assert first == again
    assert await memory.async_new_conversation(ann) == ann
    assert not await store.suspending.save_if(f"working:{ann}", MemoryEntry(content=1), 7)


async def test_tombstones_are_there_until_they_are_removed(store: SQLStore, ann: str) -> None:
    log, chat = store.suspending.log(TOMBSTONES), conversation_identity(f"chat of {ann}")
    assert not await log.are_there([owner_identity(ann), chat])
    await refuse(store, ann, chat)
    await refuse(store, ann, chat)
    for identity in (owner_identity(ann), chat):
        assert await log.are_there([identity, owner_identity("bob")])
    assert not await log.are_there([owner_identity("bob"), Identity("conversation", ann)])
    assert await log.remove(ann) == 2
    assert await log.remove(ann) == 0
    assert not await log.are_there([owner_identity(ann), chat])


@pytest.mark.parametrize("kind", ["sqlite", "psycopg"])
async def test_a_bound_store_refuses_late_writes_and_erases_nobody(kind: str, place: Place, ann: str) -> None:
    async with opened(kind, place) as store:
        await refuse(store, ann, *identities_of(ann))
        url = f"sqlite+aiosqlite:///{place.directory}/memory.db" if kind == "sqlite" else place.with_driver(kind)
        engine = create_async_engine(url)
        for write in WRITES:
            async with engine.connect() as connection, connection.begin():
                bound: Any = store.bind(connection)
                with pytest.raises(ErasedError):
                    await write(bound, ann)
                await write(bound, "bob " + ann)
        async with engine.connect() as connection, connection.begin():
            with pytest.raises(NotSupportedError, match="inside a transaction"):
                await refuse(store.bind(connection), ann)
        await engine.dispose()
