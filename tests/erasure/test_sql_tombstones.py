"""Late writes are refused in SQL, whichever way the store reaches its database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import (
    ConversationMemory,
    EntryOwnershipError,
    ErasedError,
    MemoryEntry,
    NotSupportedError,
)
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.stores.sql import SQLStore
from firefly_memory.tombstones.log import (
    TOMBSTONES,
    Identity,
    conversation_identity,
    namespace_identity,
    owner_identity,
)
from tests.support.backends import Place
from tests.support.refused_writes import KINDS, WRITES, Write, history_of, identities_of, opened, refuse


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[SQLStore]:
    async with opened(request.param, place) as store:
        yield store


@pytest.fixture
def ann() -> str:
    return f"ann {uuid4().hex}"


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
