"""Every write of a person in SQL, and the stores that it goes to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import (
    ABSENT,
    ConversationMemory,
    MemoryEntry,
    PostgreSQLStore,
    SQLiteStore,
    WorkingMemory,
    clock,
)
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG, HistoryEntry, HistoryRecord
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
