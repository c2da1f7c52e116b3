"""Writes that are under way while a person is erased: each is refused, or seen by the deletion that follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from firefly_memory import (
    ConversationMemory,
    DatabaseStoreError,
    ErasedError,
    PostgreSQLStore,
    StoreTimeoutError,
    WorkingMemory,
)
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.entries.scopes import stored_facts_of
from firefly_memory.stores.sql import SQLStore
from firefly_memory.tombstones.log import (
    TOMBSTONES,
    Identity,
    conversation_identity,
    namespace_identity,
    owner_identity,
)
from tests.support.backends import Place
from tests.support.refused_writes import KINDS, WRITES, Write, identities_of, opened, refuse

pytestmark = pytest.mark.thorough

WRITERS = 4


@pytest.fixture
def ann() -> str:
    return f"ann {uuid4().hex}"


@pytest.fixture
async def server(place: Place) -> AsyncIterator[PostgreSQLStore]:
    async with PostgreSQLStore(place.with_driver("asyncpg")) as store:
        yield store


async def _until_erased(store: SQLStore, ann: str, number: int, begun: asyncio.Barrier) -> int:
    """Write of the person until that is refused; how often it was not."""
    memory = ConversationMemory(store=store)
    conversation = f"{number % 3} of {ann}"
    facts = WorkingMemory(store=store, conversation_id=conversation)
    for written in range(100_000):
        if written == 1:
            await begun.wait()
        try:
            match number % 4:
                case 0 | 1:
                    await memory.async_add_turn(conversation, f"{ann} {written}", "a", owner=ann)
                case 2:
                    await memory.async_add_turn(conversation, f"{ann} {written}", "a")
                case _:
                    await facts.async_set(f"{written}", ann)
        except ErasedError:
            return written
        except DatabaseStoreError as error:
            if not error.retryable:  # they collide where each transaction sees one and the same state
                raise
    raise AssertionError("nothing was refused")


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_is_left_of_writes_that_were_under_way(kind: str, place: Place, ann: str) -> None:
    conversations = [f"{number} of {ann}" for number in range(3)]
    namespaces = [stored_facts_of(each) for each in conversations]
    async with opened(kind, place) as store, opened(kind, place) as other:
        for conversation in conversations:
            await ConversationMemory(store=store).async_new_conversation(conversation, owner=ann)
        begun = asyncio.Barrier(2 * WRITERS + 1)
        writers = [
            asyncio.create_task(_until_erased((store, other)[number % 2], ann, number, begun))
            for number in range(2 * WRITERS)
        ]
        async with asyncio.timeout(30):
            await begun.wait()
        identities: list[Identity] = [*map(conversation_identity, conversations), *map(namespace_identity, namespaces)]
        await _refuse_in_the_end(other, ann, identities)
        log = other.suspending.log(CONVERSATION_LOG)
        for conversation, namespace in zip(conversations, namespaces, strict=True):
            await log.delete(conversation, namespace)
        assert await other.suspending.log(TOMBSTONES).find_text(ann) == []
        assert min(await asyncio.gather(*writers)) > 0
        assert await other.suspending.log(TOMBSTONES).find_text(ann) == []


async def _refuse_in_the_end(store: SQLStore, ann: str, identities: list[Identity]) -> None:
    for _ in range(50):
        try:
            return await refuse(store, ann, *identities)
        except DatabaseStoreError as error:
            if not error.retryable:
                raise
    raise AssertionError("it always collides")


async def test_processes_in_threads_leave_nothing_either(place: Place, ann: str) -> None:
    async with opened("psycopg", place) as store:
        chat, begun = f"chat of {ann}", asyncio.Event()
        loop = asyncio.get_running_loop()

        def write() -> int:
            with PostgreSQLStore(place.with_driver("psycopg")) as own:
                memory = ConversationMemory(store=own)
                for written in range(100_000):
                    try:
                        memory.add_turn(chat, f"{ann} {written}", "a", owner=ann)
                    except ErasedError:
                        return written
                    loop.call_soon_threadsafe(begun.set)
            raise AssertionError("nothing was refused")

        writers = [asyncio.create_task(asyncio.to_thread(write)) for _ in range(WRITERS)]
        await begun.wait()
        await refuse(store, ann, conversation_identity(chat))
        await store.suspending.log(CONVERSATION_LOG).delete(chat)
        assert await store.suspending.log(TOMBSTONES).find_text(ann) == []
        assert max(await asyncio.gather(*writers)) > 0
        assert await store.suspending.log(TOMBSTONES).find_text(ann) == []


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
async def test_erasing_waits_for_the_end_of_a_transaction_that_has_written(
    server: PostgreSQLStore, place: Place, ann: str, level: str, write: Write
) -> None:
    async with _connection(place, level) as connection:
        await write(server.bind(connection), "bob " + ann)
        erasing = asyncio.create_task(refuse(server, "bob " + ann, *identities_of("bob " + ann)))
        while not await _is_waiting(server, place, "bob " + ann):
            assert not erasing.done()
        assert not erasing.done()
        await connection.commit()
        await erasing
    with pytest.raises(ErasedError):
        await write(server, "bob " + ann)


async def _is_waiting(server: PostgreSQLStore, place: Place, owner: str) -> bool:
    """Whether the tombstones are there, or wait for a lock on the key."""
    if await server.suspending.log(TOMBSTONES).are_there([owner_identity(owner)]):
        return True
    async with _connection(place, "READ COMMITTED") as connection:
        waiting = await connection.execute(text("SELECT count(*) FROM pg_locks WHERE NOT granted"))
        return bool(waiting.scalar_one())


@asynccontextmanager
async def _connection(place: Place, level: str) -> AsyncIterator[AsyncConnection]:
    engine = create_async_engine(place.with_driver("asyncpg"), isolation_level=level)
    try:
        async with engine.connect() as connection:
            yield connection
    finally:
        await engine.dispose()


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
async def test_a_transaction_that_began_before_the_erasure_cannot_write_of_the_person(
    server: PostgreSQLStore, place: Place, ann: str, level: str, write: Write
) -> None:
    async with _connection(place, level) as connection:
        await connection.execute(text("SELECT count(*) FROM firefly_memory.memory_entries"))
        await refuse(server, ann, *identities_of(ann))
        with pytest.raises(DatabaseStoreError, match="collided") as error:
            await write(server.bind(connection), ann)
        assert error.value.retryable
    assert await server.suspending.log(TOMBSTONES).find_text(ann) == []


async def test_a_transaction_that_only_reads_holds_nobody_up(server: PostgreSQLStore, place: Place, ann: str) -> None:
    async with _connection(place, "REPEATABLE READ") as connection:
        await connection.execute(text("SELECT count(*) FROM firefly_memory.memory_entries"))
        await refuse(server, ann)


async def test_a_vacuum_holds_nobody_up(server: PostgreSQLStore, place: Place, ann: str) -> None:
    async with _connection(place, "READ COMMITTED") as connection:
        for table in ("entries", "conversations", "agent_history"):
            lock = f"LOCK TABLE firefly_memory.memory_{table} IN SHARE UPDATE EXCLUSIVE MODE"  # as VACUUM does
            await connection.execute(text(lock))
        await refuse(server, ann)


async def test_erasing_gives_up_in_time_and_goes_on_later(place: Place, ann: str) -> None:
    async with PostgreSQLStore(place.with_driver("asyncpg"), timeout=0.5) as hasty:
        memory = ConversationMemory(store=hasty)
        async with _connection(place, "READ COMMITTED") as connection:
            bound: Any = hasty.bind(connection)
            await ConversationMemory(store=bound).async_add_turn(f"chat of {ann}", "p", "a", owner=ann)
            with pytest.raises(StoreTimeoutError, match="a transaction that has written") as error:
                await refuse(hasty, ann)
            assert error.value.retryable
            with pytest.raises(ErasedError):
                await memory.async_new_conversation(owner=ann)
            await connection.commit()
        await refuse(hasty, ann)
        assert len(await memory.async_get_turns(f"chat of {ann}")) == 1


def test_a_blocking_store_waits_as_well(place: Place, ann: str) -> None:
    with PostgreSQLStore(place.with_driver("psycopg")) as store:
        memory = ConversationMemory(store=store)
        memory.add_turn(f"chat of {ann}", "p", "a", owner=ann)
        run_without_loop(store.blocking.log(TOMBSTONES).add([owner_identity(ann)], ann, _now()))
        with pytest.raises(ErasedError):
            memory.new_conversation(owner=ann)


def _now() -> Any:
    from firefly_memory import clock

    return clock.now()
