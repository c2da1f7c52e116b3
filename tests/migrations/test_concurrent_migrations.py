"""Concurrent migrations: no start deadlocks with another, and none delays the others."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import EntryStore, MemoryEntry, PostgreSQLStore, SQLiteStore, StoreTimeoutError
from firefly_memory.databases.sql.schema import metadata as schema
from firefly_memory.databases.sql.schema import migration_lock
from firefly_memory.databases.sql.schema.migration_lock import lock_key
from tests.support.backends import Place

DRIVERS = pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def admin(place: Place) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(place.postgresql(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def new_schema(admin: psycopg.Connection[Any]) -> Iterator[Callable[[], str]]:
    """Names of schemas that nobody has used."""
    with ExitStack() as later:

        def name() -> str:
            name = f"at_once_{uuid4().hex[:8]}"
            later.callback(lambda: admin.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode()))
            return name

        yield name


@contextmanager
def held_up(place: Place, schema_name: str) -> Iterator[psycopg.Connection[Any]]:
    """A migration of this schema stops in its middle until this connection commits."""
    with psycopg.connect(place.postgresql()) as holder:
        holder.execute(f"CREATE SCHEMA {schema_name}".encode())
        holder.execute(f"CREATE TABLE {schema_name}.firefly_memory_version (version_num VARCHAR(32))".encode())
        holder.commit()
        holder.execute(f"LOCK TABLE {schema_name}.firefly_memory_version IN EXCLUSIVE MODE".encode())
        yield holder


def at_work(admin: psycopg.Connection[Any]) -> list[Any]:
    query = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'firefly-memory' AND state = 'active'"
    return admin.execute(query).fetchall()


async def stopped(task: asyncio.Task[None], admin: psycopg.Connection[Any]) -> None:
    """The task waits for the one who holds the migration up."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'relation' AND query LIKE '%firefly_memory_version%'"
    while not admin.execute(waiting).fetchall():
        assert not task.done()
        await asyncio.sleep(0)


@DRIVERS
@pytest.mark.parametrize("other", ["other schema", "sqlite"])
async def test_a_blocking_call_does_not_wait_for_a_task_that_migrates_another_store(
    other: str, driver: str, place: Place, new_schema: Callable[[], str], admin: psycopg.Connection[Any]
) -> None:
    name = new_schema()
    store = PostgreSQLStore(place.with_driver(driver), schema_name=name)
    beside: EntryStore = SQLiteStore(place.directory / "memory.db")
    if other == "other schema":
        beside = PostgreSQLStore(place.postgresql(), schema_name=new_schema())
    with held_up(place, name):
        task = asyncio.create_task(store.initialize())
        await stopped(task, admin)
        with beside:
            beside.save("n", MemoryEntry())
    await task
    await store.close()


@DRIVERS
async def test_a_blocking_call_waits_for_a_task_that_migrates_the_same_store(
    driver: str, place: Place, new_schema: Callable[[], str], admin: psycopg.Connection[Any]
) -> None:
    name = new_schema()
    store = PostgreSQLStore(place.with_driver(driver), schema_name=name, timeout=20)
    with held_up(place, name) as holder:

        def release_when_both_wait() -> None:
            while len(at_work(admin)) < 2:
                pass
            holder.commit()

        task = asyncio.create_task(store.initialize())
        await stopped(task, admin)
        thread = threading.Thread(target=release_when_both_wait)
        thread.start()
        store.save("n", MemoryEntry(content="blocking"))
        thread.join()
    await task
    assert [entry.content for entry in await store.async_load("n")] == ["blocking"]
    await store.close()


async def test_an_asynchronous_engine_is_migrated_while_another_store_is(
    place: Place, new_schema: Callable[[], str]
) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{place.directory}/own.db")
    server = create_async_engine(place.with_driver("asyncpg"))
    stores = [
        PostgreSQLStore(place.postgresql(), schema_name=new_schema()),
        PostgreSQLStore(engine=server, schema_name=new_schema()),
        SQLiteStore(engine=engine),
    ]
    await asyncio.gather(*[store.async_save("n", MemoryEntry(content=number)) for number, store in enumerate(stores)])
    for number, store in enumerate(stores):
        assert [entry.content for entry in await store.async_load("n")] == [number]
        await store.close()
    await engine.dispose()
    await server.dispose()


async def test_stores_on_one_engine_in_memory_take_turns_on_its_only_connection() -> None:
    engine = create_async_engine("sqlite+aiosqlite://")
    stores = [SQLiteStore(engine=engine) for _ in range(3)]
    await asyncio.gather(*[store.async_save("n", MemoryEntry()) for store in stores * 5])
    assert [await store.async_count("n") for store in stores] == [15] * 3
    await engine.dispose()


@DRIVERS
async def test_a_cancelled_start_leaves_no_lock(
    driver: str, place: Place, new_schema: Callable[[], str], admin: psycopg.Connection[Any]
) -> None:
    name = new_schema()
    store = PostgreSQLStore(place.with_driver(driver), schema_name=name)
    with held_up(place, name) as holder:
        task = asyncio.create_task(store.initialize())
        await stopped(task, admin)
        task.cancel()
        asyncio.get_running_loop().call_soon(holder.commit)
        with pytest.raises(asyncio.CancelledError):
            await task
    assert admin.execute("SELECT pg_try_advisory_lock(%s)", (lock_key(name),)).fetchone() == (True,)
    admin.execute("SELECT pg_advisory_unlock(%s)", (lock_key(name),))
    await store.async_save("n", MemoryEntry())
    await store.close()


def test_a_start_that_finds_the_lock_taken_gives_up_when_it_is_cancelled(
    place: Place, new_schema: Callable[[], str], admin: psycopg.Connection[Any]
) -> None:
    schema_name = new_schema()

    async def start() -> None:
        async with asyncio.timeout(1):
            await PostgreSQLStore(place.postgresql(), schema_name=schema_name, timeout=100).initialize()

    admin.execute("SELECT pg_advisory_lock(%s)", (lock_key(schema_name),))
    with pytest.raises(TimeoutError):
        asyncio.run(start())
    admin.execute("SELECT pg_advisory_unlock(%s)", (lock_key(schema_name),))


@contextmanager
def held_by_somebody(place: Place, name: str, admin: psycopg.Connection[Any]) -> Iterator[str]:
    """A role that may do nothing but log in holds the migration lock of a schema; how an error describes it."""
    role = f"held_{name}"
    admin.execute(f"CREATE ROLE {role} LOGIN".encode())
    try:
        with psycopg.connect(place.postgresql(), user=role, application_name="somebody", autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(%s)", (lock_key(name),))
            yield f"process {other.info.backend_pid} of the server, role {role!r}, application 'somebody', since "
    finally:
        admin.execute(f"DROP ROLE {role}".encode())


@DRIVERS
@pytest.mark.parametrize("sees_all", [True, False])
async def test_the_holder_of_the_migration_lock_is_named_while_others_wait(
    driver: str,
    sees_all: bool,
    place: Place,
    new_schema: Callable[[], str],
    admin: psycopg.Connection[Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(migration_lock, "_FIRST_WORD", 0.0)
    name = new_schema()
    url = place.with_driver(driver)
    if not sees_all:
        admin.execute(f"CREATE ROLE starts_{name} LOGIN".encode())
        url = url.replace("postgres@", f"starts_{name}@")
    with held_by_somebody(place, name, admin) as described:
        since = f"{datetime.now(UTC):%Y}" if sees_all else "a time that this role may not see"
        with pytest.raises(StoreTimeoutError) as caught:
            await PostgreSQLStore(url, schema_name=name, timeout=0.5).initialize()
        assert described + since in str(caught.value)
        assert "0.5 seconds" in str(caught.value)
        assert described + since in caplog.text
    if not sees_all:
        admin.execute(f"DROP ROLE starts_{name}".encode())


@pytest.mark.parametrize("pool_min_size", [2, 10])
async def test_simultaneous_starts_of_one_store_do_not_deadlock(
    pool_min_size: int, place: Place, new_schema: Callable[[], str]
) -> None:
    name = new_schema()
    for driver in ("asyncpg", "psycopg"):
        url = place.with_driver(driver)
        async with PostgreSQLStore(
            url, schema_name=name, timeout=10, pool_size=pool_min_size, pool_min_size=pool_min_size
        ) as store:
            await asyncio.gather(*[store.initialize() for _ in range(20)], *[store.async_count("n") for _ in range(20)])


def test_simultaneous_starts_in_threads_do_not_deadlock(place: Place, new_schema: Callable[[], str]) -> None:
    store = PostgreSQLStore(place.postgresql(), schema_name=new_schema(), timeout=10, pool_size=4, pool_min_size=4)
    with store, ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: store.count("n") if number % 2 else store.initialize_sync(), range(32)))


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg", "sqlite"])
def test_a_downgraded_schema_is_created_anew(
    driver: str, place: Place, new_schema: Callable[[], str], admin: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """A downgrade leaves the version table, empty."""
    name = new_schema()

    def store() -> EntryStore:
        return (
            SQLiteStore(tmp_path / "memory.db")
            if driver == "sqlite"
            else PostgreSQLStore(place.with_driver(driver), schema_name=name)
        )

    with store() as first:
        first.save("n", MemoryEntry())
    drops = "".join(f"DROP TABLE {{0}}{table};" for table in schema.metadata(None).tables)
    script = drops + "DELETE FROM {0}firefly_memory_version;"
    if driver == "sqlite":
        connection = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
        virtual = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'").fetchall()
        connection.executescript("".join(f"DROP TABLE {name};" for (name,) in virtual) + script.format(""))
        connection.close()
    else:
        admin.execute(script.format(f"{name}.").encode())

    async def use() -> None:
        async with store() as second:
            await second.async_save("n", MemoryEntry())
            assert await second.async_count("n") == 1

    asyncio.run(use())
