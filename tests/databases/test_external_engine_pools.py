"""Stores on an engine of the caller, with every kind of pool and isolation level."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import StaticPool

from firefly_memory import ConfigurationError, EntryOwnershipError, MemoryEntry, PostgreSQLStore, SQLiteStore
from firefly_memory.databases.sql.schema.metadata import VERSION_TABLE
from firefly_memory.stores.sql import SQLStore
from tests.support.backends import Place

NAMESPACE = "engines"


def store_on(engine: Engine | AsyncEngine) -> SQLStore:
    kind: type[SQLiteStore | PostgreSQLStore] = SQLiteStore if engine.dialect.name == "sqlite" else PostgreSQLStore
    return kind(engine=engine)


@contextmanager
def blocking_engine(driver: str, place: Place, **options: Any) -> Iterator[Engine]:
    url = f"sqlite:///{place.directory}/own.db" if driver == "sqlite" else place.with_driver(driver)
    engine = create_engine(url, **options)
    try:
        yield engine
    finally:
        engine.dispose()


@asynccontextmanager
async def suspending_engine(driver: str, place: Place, **options: Any) -> AsyncIterator[AsyncEngine]:
    url = f"sqlite+aiosqlite:///{place.directory}/own.db" if driver == "aiosqlite" else place.with_driver(driver)
    engine = create_async_engine(url, **options)
    try:
        yield engine
    finally:
        await engine.dispose()


BLOCKING = pytest.mark.parametrize("driver", ["sqlite", "psycopg"])
SUSPENDING = pytest.mark.parametrize("driver", ["aiosqlite", "asyncpg", "psycopg"])
SKIPPING = pytest.mark.parametrize("skip", [False, True], ids=["", "skips rollback"])


@BLOCKING
@SKIPPING
def test_an_engine_in_autocommit_mode_still_saves_all_or_nothing(driver: str, skip: bool, place: Place) -> None:
    with blocking_engine(driver, place, isolation_level="AUTOCOMMIT", skip_autocommit_rollback=skip) as engine:
        store = store_on(engine)
        store.clear(NAMESPACE)
        store.save(NAMESPACE, MemoryEntry(content=1))
        store.save_many(NAMESPACE, [MemoryEntry(content=2), MemoryEntry(content=3)])
        store.save("elsewhere", MemoryEntry(entry_id="theirs"))
        with pytest.raises(EntryOwnershipError):
            store.save_many(NAMESPACE, [MemoryEntry(content=4), MemoryEntry(entry_id="theirs")])
        assert [entry.content for entry in store.load(NAMESPACE)] == [1, 2, 3]
        with engine.connect() as connection:
            assert connection._is_autocommit_isolation(), "to its owner it is what it was"
        store.clear(NAMESPACE)
        store.clear("elsewhere")


@SUSPENDING
async def test_an_asynchronous_engine_in_autocommit_mode_still_saves_all_or_nothing(driver: str, place: Place) -> None:
    async with suspending_engine(driver, place, isolation_level="AUTOCOMMIT") as engine:
        store = store_on(engine)
        await store.async_clear(NAMESPACE)
        await store.async_save("elsewhere", MemoryEntry(entry_id="theirs"))
        await store.async_save_many(NAMESPACE, [MemoryEntry(content=1), MemoryEntry(content=2)])
        with pytest.raises(EntryOwnershipError):
            await store.async_save_many(NAMESPACE, [MemoryEntry(content=3), MemoryEntry(entry_id="theirs")])
        assert [entry.content for entry in await store.async_load(NAMESPACE)] == [1, 2]
        await store.async_clear(NAMESPACE)
        await store.async_clear("elsewhere")


def test_an_engine_with_a_database_for_each_thread_is_refused() -> None:
    engine = create_engine("sqlite://")
    with pytest.raises(ConfigurationError, match=r"StaticPool|':memory:'"):
        SQLiteStore(engine=engine)


async def write_and_count(store: SQLStore) -> None:
    """Sixty calls at once, every other of two entries."""

    async def call(number: int) -> None:
        if number % 2:
            await store.async_save(NAMESPACE, MemoryEntry(content=number))
        else:
            await store.async_save_many(NAMESPACE, [MemoryEntry(content=number), MemoryEntry(content=number)])

    await asyncio.gather(*[call(number) for number in range(60)])
    assert await store.async_count(NAMESPACE) == 90


def test_an_engine_with_one_connection_for_all_threads_is_used_by_one_at_a_time() -> None:
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    store = SQLiteStore(engine=engine)
    asyncio.run(write_and_count(store))
    with ThreadPoolExecutor(8) as threads:
        entries = [[MemoryEntry(), MemoryEntry()] for _ in range(30)]
        list(threads.map(lambda batch: store.save_many(NAMESPACE, batch), entries))
    assert store.count(NAMESPACE) == 150
    engine.dispose()


async def test_an_asynchronous_engine_with_one_connection_is_used_by_one_task_at_a_time() -> None:
    engine = create_async_engine("sqlite+aiosqlite://")
    assert isinstance(engine.pool, StaticPool)
    await write_and_count(SQLiteStore(engine=engine))
    await engine.dispose()


def looks_at_the_schema(engine: Engine) -> list[str]:
    seen: list[str] = []

    def see(_: Any, __: Any, statement: str, *___: Any) -> None:
        if VERSION_TABLE in statement:
            seen.append(statement)

    event.listen(engine, "before_cursor_execute", see)
    return seen


@BLOCKING
async def test_simultaneous_calls_check_the_schema_once(driver: str, place: Place) -> None:
    with blocking_engine(driver, place) as engine:
        store_on(engine).initialize_sync()
        seen = looks_at_the_schema(engine)
        store = store_on(engine)
        await asyncio.gather(*[store.async_count(NAMESPACE) for _ in range(20)])
        assert len(seen) == 1


@SUSPENDING
async def test_simultaneous_tasks_check_the_schema_once(driver: str, place: Place) -> None:
    async with suspending_engine(driver, place) as engine:
        await store_on(engine).initialize()
        seen = looks_at_the_schema(engine.sync_engine)
        store = store_on(engine)
        await asyncio.gather(*[store.async_count(NAMESPACE) for _ in range(20)])
        assert len(seen) == 1


async def test_a_large_batch_is_split_into_statements_in_the_order_of_ids(place: Place) -> None:
    sent: list[list[str]] = []

    def note(*arguments: Any) -> None:
        if "unnest" in arguments[2]:
            sent.append([each for each in arguments[3] if isinstance(each, str)])

    async with suspending_engine("asyncpg", place) as engine:
        store = store_on(engine)
        await store.async_clear(NAMESPACE)
        event.listen(engine.sync_engine, "before_cursor_execute", note)
        ids = [f"many-{n}" for n in (3, 1, 2)]
        entries = [MemoryEntry(entry_id=each, content="x" * 2_100_000) for each in ids]
        await store.async_save_many(NAMESPACE, entries)
        assert await store.async_count(NAMESPACE) == 3
        await store.async_clear(NAMESPACE)
    assert [len(re.findall(r"many-\d", str(statement))) for statement in sent] == [1, 1, 1]
    assert re.findall(r"many-\d", str(sent)) == sorted(ids)
