"""PostgreSQL behind PgBouncer, which hands the server's connections from client to client."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import (
    ConfigurationError,
    ConversationMemory,
    DatabaseStoreError,
    MemoryEntry,
    PostgreSQLStore,
    StoreTimeoutError,
)
from firefly_memory.settings import MemorySettings
from firefly_memory.target import configured_store
from firefly_memory.testing import Check, Mode, checks
from tests.support.backends import Place
from tests.support.durations import in_the_end
from tests.support.pgbouncer import PgBouncer
from tests.support.store_caller import MakeStoreCaller

pytestmark = pytest.mark.thorough

MODES = ("transaction", "session")
DRIVERS = ("asyncpg", "psycopg")

on_each_driver = pytest.mark.parametrize("driver", DRIVERS)
in_each_mode = pytest.mark.parametrize("mode", Mode)

Admin = psycopg.Connection[Any]


@pytest.fixture(scope="session")
def through(servers_of_the_session: dict[str, Callable[[], str]]) -> Iterator[Callable[[str, str], str]]:
    """The URL of a server behind a PgBouncer of a pooling, for a driver."""
    with ExitStack() as running:

        @cache
        def started(pooling: str) -> PgBouncer:
            server = servers_of_the_session["postgresql"]()
            # In session pooling nobody shares while he is connected, and some checks open a lot of connections.
            pooler = (
                PgBouncer(server, pooling, pool_size=3)
                if pooling == "transaction"
                else PgBouncer(server, pooling, pool_size=50, ignore_startup_parameters="options")
            )
            running.callback(pooler.remove)
            pooler.start()
            return pooler

        yield lambda pooling, driver: with_driver(started(pooling).url, driver)


def with_driver(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


@contextmanager
def a_pooler_of_our_own(place: Place, pooling: str = "transaction", **options: Any) -> Iterator[PgBouncer]:
    pooler = PgBouncer(place.postgresql(), pooling, **options)
    try:
        pooler.start()
        yield pooler
    finally:
        pooler.remove()


@pytest.mark.parametrize("pooling", MODES)
@on_each_driver
@in_each_mode
@pytest.mark.parametrize("check", checks(), ids=str)
def test_conformance(check: Check, mode: Mode, driver: str, pooling: str, through: Callable[[str, str], str]) -> None:
    check.run(lambda: PostgreSQLStore(through(pooling, driver), pooler=pooling), mode)


@on_each_driver
async def test_connections_that_are_opened_at_once_are_all_opened_without_the_refused_settings(
    driver: str, through: Callable[[str, str], str]
) -> None:
    store = PostgreSQLStore(through("transaction", driver), pooler="transaction", pool_size=5)
    try:
        store.count("n")  # the schema is known, so the first calls of the event loop connect at once
        assert await asyncio.gather(*[store.async_count("n") for _ in range(5)]) == [0] * 5
    finally:
        await store.close()


@on_each_driver
async def test_two_stores_at_once_share_the_connections_of_the_server(driver: str, name: str, place: Place) -> None:
    with a_pooler_of_our_own(place, pool_size=2) as pooler:
        url = with_driver(pooler.url, driver)
        async with (
            PostgreSQLStore(url, schema_name=name, pooler="transaction", pool_size=5) as one,
            PostgreSQLStore(url, schema_name=name, pooler="transaction", pool_size=5) as other,
        ):

            async def work(store: PostgreSQLStore, number: int) -> None:
                entry = MemoryEntry(entry_id=f"{number}", content=number / 7)
                await store.async_save(f"n{number}", entry)
                await store.async_save_many(f"n{number}", [MemoryEntry(content=number) for _ in range(3)])
                assert await store.async_save_if(f"n{number}", entry, number / 7)
                assert [entry.content for entry in await other.async_load(f"n{number}")] == [number / 7] + [number] * 3
                assert await store.async_delete_many(f"n{number}", [f"{number}"]) == 1

            await asyncio.gather(
                *[work(store, number) for number in range(20) for store in ((one, other)[number % 2],)]
            )
            assert await one.async_count("n7") == 3


# The schema

INITIALIZE = "from firefly_memory import PostgreSQLStore; import asyncio, sys; _, url, name = sys.argv; "
STARTS = [
    [sys.executable, "-c", f"{INITIALIZE} {start}"]
    for start in (
        "PostgreSQLStore(url, schema_name=name, pooler='transaction').initialize_sync()",
        "asyncio.run(PostgreSQLStore(url, schema_name=name, pooler='transaction').initialize())",
    )
]


def started(url: str, name: str, number: int) -> subprocess.Popen[str]:
    """A process that migrates: in either mode, with either driver, or from the command line."""
    arguments = [with_driver(url, DRIVERS[number % 2]), name]
    command = [*STARTS[number // 2 % 2], *arguments]
    if number % 4 == 3:
        command = [sys.executable, "-m", "firefly_memory.cli", "db", "upgrade", "--url", url, "--schema", name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_eight_processes_migrate_at_once(name: str, through: Callable[[str, str], str], admin: Admin) -> None:
    processes = [started(through("transaction", "asyncpg").replace("+asyncpg", ""), name, each) for each in range(8)]
    said = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, said
    with PostgreSQLStore(through("transaction", "psycopg"), schema_name=name, migrate=False, pooler="transaction"):
        pass
    assert not admin.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'").fetchall()


def test_a_killed_migrator_does_not_block_the_others(
    name: str, through: Callable[[str, str], str], admin: Admin
) -> None:
    url = through("transaction", "psycopg")
    admin.execute(f"CREATE SCHEMA {name}".encode())
    admin.execute(f"CREATE TABLE {name}.firefly_memory_version (version_num VARCHAR(32))".encode())
    with psycopg.connect(admin.info.dsn) as holder:
        holder.execute(f"LOCK TABLE {name}.firefly_memory_version IN EXCLUSIVE MODE".encode())
        process = started(url.replace("+psycopg", ""), name, 0)
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
        while not admin.execute(waiting, (f"{name}.firefly_memory_version",)).fetchall():
            assert process.poll() is None
        process.kill()
        process.communicate()
    with PostgreSQLStore(url, schema_name=name, pooler="transaction") as store:
        store.save("n", MemoryEntry())


# Trouble


@on_each_driver
@in_each_mode
@pytest.mark.parametrize("pooling", MODES)
def test_a_restart_of_the_pooler_goes_unnoticed(
    pooling: str, mode: Mode, driver: str, place: Place, name: str, using: MakeStoreCaller
) -> None:
    with a_pooler_of_our_own(place, pooling) as pooler:
        store = using(PostgreSQLStore(with_driver(pooler.url, driver), schema_name=name, pooler=pooling), mode)
        store("save", "n", MemoryEntry(content="before"))
        pooler.kill()
        pooler.start()
        store("save", "n", MemoryEntry(content="after"))
        assert [entry.content for entry in store("load", "n")] == ["before", "after"]
        pooler.kill()
        with pytest.raises(DatabaseStoreError) as caught:
            store("load", "n")
        assert caught.value.retryable
        pooler.start()
        assert store("count", "n") == 2


@on_each_driver
@in_each_mode
def test_without_the_pgbouncer_option_the_error_names_it(
    mode: Mode, driver: str, place: Place, name: str, using: MakeStoreCaller
) -> None:
    """And nobody's statement is run in place of somebody else's."""
    with a_pooler_of_our_own(place, pool_size=2) as pooler:
        url = with_driver(pooler.url, driver)
        store = using(PostgreSQLStore(url, schema_name=name, pool_size=1), mode)
        for _ in range(10):
            store("save", "n", MemoryEntry(entry_id="it", content="first"))
        with psycopg.connect(pooler.url) as beside:
            beside.execute("SELECT 1")  # has the connection that the statement was prepared on
            with pytest.raises(DatabaseStoreError, match='pass pooler="transaction"') as caught:
                store("save", "n", MemoryEntry(entry_id="it", content="second"))
        assert not caught.value.retryable


@contextmanager
def locked(place: Place, name: str) -> Iterator[Admin]:
    """A transaction that keeps others waiting for the entry."""
    with psycopg.connect(place.postgresql()) as other:
        other.execute(f"SELECT 1 FROM {name}.memory_entries WHERE entry_id = 'it' FOR UPDATE".encode())
        yield other
        other.execute(f"DELETE FROM {name}.memory_entries".encode())


def at_work(admin: Admin, name: str) -> list[Any]:
    query = "SELECT query FROM pg_stat_activity WHERE query LIKE %s AND query LIKE '%%INSERT%%' AND state = 'active'"
    return admin.execute(query, (f"%{name}%",)).fetchall()


@on_each_driver
@in_each_mode
@pytest.mark.parametrize(("pooling", "operation"), [("transaction", "save_many"), ("session", "save")])
def test_a_save_that_timed_out_is_not_written_later(
    *,
    pooling: str,
    operation: str,
    mode: Mode,
    driver: str,
    place: Place,
    name: str,
    admin: Admin,
    through: Callable[[str, str], str],
    using: MakeStoreCaller,
) -> None:
    """The server does not know of the time-out. It is asked, through the pooler, to end the statement."""
    url = through(pooling, driver)
    store = using(PostgreSQLStore(url, schema_name=name, pooler=pooling, timeout=0.3, pool_size=2), mode)
    in_the_end(lambda: store("save", "n", MemoryEntry(entry_id="it", content="first")))
    late = MemoryEntry(entry_id="it", content="late")
    with locked(place, name):
        with pytest.raises(StoreTimeoutError):
            store(operation, "n", late if operation == "save" else [MemoryEntry(content="beside"), late])
        assert not at_work(admin, name)
    assert in_the_end(lambda: store("load", "n")) == []


@on_each_driver
async def test_a_save_that_was_cancelled_is_not_written_later(
    driver: str, place: Place, name: str, admin: Admin, through: Callable[[str, str], str]
) -> None:
    async with PostgreSQLStore(through("transaction", driver), schema_name=name, pooler="transaction") as store:
        await store.async_save("n", MemoryEntry(entry_id="it", content="first"))
        with locked(place, name):
            task = asyncio.create_task(store.async_save("n", MemoryEntry(entry_id="it", content="late")))
            while not at_work(admin, name):  # noqa: ASYNC110 - the server has no event to wait for
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await store.async_load("n") == []


# The option


def test_an_unknown_pooler_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must be 'transaction', 'session' or None, not 'statement'"):
        PostgreSQLStore("postgresql://h/d", pooler="statement")


def test_the_pooler_option_is_refused_for_an_engine_of_the_caller() -> None:
    with pytest.raises(ConfigurationError, match="connect_args"):
        PostgreSQLStore(engine=create_engine("postgresql+psycopg://h/d"), pooler="transaction")


async def test_engines_of_the_caller_without_prepared_statements_work(
    name: str, through: Callable[[str, str], str]
) -> None:
    unprepared = {"statement_cache_size": 0, "prepared_statement_cache_size": 0}
    suspending = create_async_engine(through("transaction", "asyncpg"), connect_args=unprepared)
    blocking = create_engine(through("transaction", "psycopg"), connect_args={"prepare_threshold": None})
    async with (
        PostgreSQLStore(engine=suspending, schema_name=name) as one,
        PostgreSQLStore(engine=blocking, schema_name=name) as other,
    ):
        for store in (one, other) * 8:
            await asyncio.gather(*[store.async_save("n", MemoryEntry()) for _ in range(8)])
        assert await one.async_count("n") == await other.async_count("n") == 128
    await suspending.dispose()
    blocking.dispose()


@pytest.mark.parametrize("by", ["url", "backend"])
def test_the_pooler_can_be_set_in_the_settings(by: str, through: Callable[[str, str], str], name: str) -> None:
    url = through("transaction", "psycopg")
    given = {"url": url} if by == "url" else {"backend": "postgres", "postgres_url": url, "postgres_schema": name}
    store = configured_store(MemorySettings.model_validate(given | {"postgres_pooler": "transaction"}))
    threads = [threading.Thread(target=store.save, args=["settings", MemoryEntry(content=each)]) for each in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(entry.content for entry in store.load("settings")) == list(range(40))
    store.clear("settings")
    store.close_sync()


# Statements that were prepared before somebody changed the tables, on a direct connection too


def alter(admin: Admin, name: str) -> None:
    """Other types for what the statements return."""
    admin.execute(
        f"ALTER TABLE {name}.memory_entries ALTER key TYPE VARCHAR(600), ALTER entry_id TYPE VARCHAR(600)".encode()
    )
    admin.execute(f"ALTER TABLE {name}.memory_conversations ALTER turns TYPE INTEGER".encode())


def url_of(pooling: str | None, driver: str, place: Place, through: Callable[[str, str], str]) -> str:
    return place.with_driver(driver) if pooling is None else through(pooling, driver)


@on_each_driver
@in_each_mode
@pytest.mark.parametrize("pooling", [None, *MODES])
def test_a_running_store_survives_altered_tables(
    pooling: str | None,
    mode: Mode,
    driver: str,
    place: Place,
    name: str,
    admin: Admin,
    using: MakeStoreCaller,
    through: Callable[[str, str], str],
) -> None:
    store = using(
        PostgreSQLStore(url_of(pooling, driver, place, through), schema_name=name, pooler=pooling, pool_size=1), mode
    )
    entries = [MemoryEntry(key="k", content=number) for number in range(3)]
    for _ in range(8):
        store("save_many", "n", entries)
        store("load", "n")
        store("load_by_key", "n", "k")
    alter(admin, name)
    assert store("load", "n") == entries
    store("save_many", "n", [*entries, MemoryEntry(key="k", content="after")])
    assert store("load_by_key", "n", "k").content == "after"
    assert store("delete_many", "n", [entry.entry_id for entry in entries]) == 3


@on_each_driver
@pytest.mark.parametrize("pooling", [None, *MODES])
async def test_all_connections_of_a_pool_survive_altered_tables(
    pooling: str | None, driver: str, place: Place, name: str, admin: Admin, through: Callable[[str, str], str]
) -> None:
    url = url_of(pooling, driver, place, through)
    async with PostgreSQLStore(url, schema_name=name, pooler=pooling, pool_size=4) as store:

        async def work() -> None:
            memory = ConversationMemory(store=store)
            for _ in range(8):
                await store.async_save("n", MemoryEntry(key="k"))
                await store.async_load_by_key("n", "k")
                await memory.async_add_turn("c", "question", "answer")

        await asyncio.gather(*[work() for _ in range(8)])
        alter(admin, name)
        await asyncio.gather(*[work() for _ in range(8)])
        assert await store.async_count("n") == 128
        assert len(await ConversationMemory(store=store).async_get_turns("c")) == 128


def test_altered_tables_are_a_retryable_error_on_an_engine_of_the_caller(place: Place, name: str, admin: Admin) -> None:
    engine = create_engine(place.with_driver("psycopg"))
    with PostgreSQLStore(engine=engine, schema_name=name) as store:
        for _ in range(8):
            store.save("n", MemoryEntry(key="k", content="kept"))
            store.load_by_key("n", "k")
        alter(admin, name)
        with pytest.raises(DatabaseStoreError, match="tables have been changed") as caught:
            store.load_by_key("n", "k")
        assert caught.value.retryable
        assert getattr(store.load_by_key("n", "k"), "content", None) == "kept"
    engine.dispose()
