"""R12 for PostgreSQL servers that are unreachable or full: one clear error, and the store recovers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from firefly_memory import DatabaseConnectionError, MemoryEntry, PostgreSQLStore
from firefly_memory.testing import Mode
from tests.support.backends import Place
from tests.support.servers import EmbeddedPostgreSQL, free_port
from tests.support.stoppable_postgresql import DRIVERS, IN_BOTH_MODES, PASSWORD, everything_shown, url
from tests.support.store_caller import MakeStoreCaller


@DRIVERS
@IN_BOTH_MODES
def test_dead_idle_connections_are_replaced_silently(
    driver: str, mode: Mode, server: EmbeddedPostgreSQL, using: MakeStoreCaller, run_sql: Callable[[str], list[Any]]
) -> None:
    database = PostgreSQLStore(url(server, driver), schema_name="rested", pool_size=3)
    store = using(database, mode)
    store("clear", "n")
    for number in range(3):
        run_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'firefly-memory'")
        store("save", "n", MemoryEntry(content=number))
        store("save_many", "n", [MemoryEntry(content=number), MemoryEntry(content=number)])
    assert store("count", "n") == 9


@IN_BOTH_MODES
def test_an_unreachable_host_is_an_error_without_the_password(mode: Mode, using: MakeStoreCaller) -> None:
    for host in (f"127.0.0.1:{free_port()}", "no-such-host.invalid", "a..b", "%2Fno%2Fsuch%2Fsocket"):
        store = using(PostgreSQLStore(f"postgresql://user:{PASSWORD}@{host}/name", timeout=5), mode)
        with pytest.raises(DatabaseConnectionError) as caught:
            store("load", "n")
        assert PASSWORD not in everything_shown(caught.value)


@IN_BOTH_MODES
def test_the_first_of_several_hosts_that_answers_is_used(
    mode: Mode, server: EmbeddedPostgreSQL, using: MakeStoreCaller
) -> None:
    several = server.url.replace("@", f"@127.0.0.1:{free_port()},")
    store = using(PostgreSQLStore(several, schema_name="several", timeout=10), mode)
    store("clear", "n")
    store("save", "n", MemoryEntry())
    assert store("count", "n") == 1


@IN_BOTH_MODES
def test_a_url_can_name_a_unix_socket(mode: Mode, place: Place, using: MakeStoreCaller) -> None:
    own = EmbeddedPostgreSQL()
    try:
        own.start()
        for address in (
            f"postgresql://postgres@/postgres?host=/tmp&port={own.port}",
            f"postgresql://postgres@%2Ftmp:{own.port}/postgres?sslmode=disable",
        ):
            store = using(PostgreSQLStore(address), mode)
            store("save", "n", MemoryEntry())
            assert store("count", "n") >= 1
    finally:
        own.remove()


@IN_BOTH_MODES
def test_many_stores_that_start_on_a_nearly_full_server_take_turns(
    mode: Mode, small_server: EmbeddedPostgreSQL
) -> None:
    """Each has a store of its own, migrates, opens two connections if there is room, and leaves."""
    name = f"few_{mode}"

    def work(number: int) -> None:
        store = PostgreSQLStore(small_server.url, schema_name=name, timeout=60)
        if mode is Mode.BLOCKING:
            with store:
                store.save("n", MemoryEntry(content=number))
        else:
            asyncio.run(_saved_by_one_of_many(store, number))

    with ExitStack() as others, ThreadPoolExecutor(16) as threads:
        for _ in range(8):
            others.enter_context(psycopg.connect(small_server.url))
        list(threads.map(work, range(16)))
    with PostgreSQLStore(small_server.url, schema_name=name) as store:
        assert sorted(entry.content for entry in store.load("n")) == list(range(16))


async def _saved_by_one_of_many(store: PostgreSQLStore, number: int) -> None:
    async with store:
        await store.async_save("n", MemoryEntry(content=number))


async def test_on_a_full_server_callers_share_the_existing_connections(small_server: EmbeddedPostgreSQL) -> None:
    with ExitStack() as others:
        for _ in range(10):
            others.enter_context(psycopg.connect(small_server.url))
        async with PostgreSQLStore(small_server.url, schema_name="shared", pool_size=5, timeout=10) as store:
            await asyncio.gather(*[store.async_count("n") for _ in range(20)])


@IN_BOTH_MODES
def test_a_full_server_is_an_error_within_the_time_out(
    mode: Mode, small_server: EmbeddedPostgreSQL, using: MakeStoreCaller
) -> None:
    store = using(PostgreSQLStore(small_server.url, schema_name="full", timeout=1), mode)
    with ExitStack() as others:
        for _ in range(12):
            others.enter_context(psycopg.connect(small_server.url))
        with pytest.raises(DatabaseConnectionError, match="no free connection slot; lower pool_size") as caught:
            store("count", "n")
        assert caught.value.retryable
    assert store("count", "n") == 0
