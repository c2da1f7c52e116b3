"""R12 for rows of PostgreSQL: locked, damaged and too long rows, and cancelled calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from firefly_memory import (
    CorruptDataError,
    EntryStore,
    InvalidEntryError,
    MemoryEntry,
    PostgreSQLStore,
    StoreTimeoutError,
)
from firefly_memory.testing import Mode
from tests.support.servers import EmbeddedPostgreSQL
from tests.support.stoppable_postgresql import IN_BOTH_MODES
from tests.support.store_caller import MakeStoreCaller


@IN_BOTH_MODES
def test_a_locked_row_ends_in_a_time_out_and_delays_nobody_else(
    mode: Mode, server: EmbeddedPostgreSQL, using: MakeStoreCaller
) -> None:
    made = PostgreSQLStore(server.url, schema_name="locked", timeout=1)
    store = using(made, mode)
    store("clear", "n")
    store("save", "n", MemoryEntry(entry_id="locked"))
    with psycopg.connect(server.url) as other:
        other.execute("SELECT 1 FROM locked.memory_entries WHERE entry_id = 'locked' FOR UPDATE")
        with pytest.raises(StoreTimeoutError) as caught:
            store("save", "n", MemoryEntry(entry_id="locked", content="late"))
        assert caught.value.retryable
        if mode is Mode.SUSPENDING:
            results = store.runner.run(_saves_beside_a_locked_one(made))
            assert [type(result) for result in results] == [StoreTimeoutError, *[type(None)] * 30]
        other.rollback()
    store("save", "n", MemoryEntry(entry_id="locked", content="now"))
    assert store("load", "n")[0].content == "now"


async def _saves_beside_a_locked_one(store: EntryStore) -> list[BaseException | None]:
    entries = [MemoryEntry(entry_id="locked"), *[MemoryEntry() for _ in range(30)]]
    return await asyncio.gather(*[store.async_save("n", entry) for entry in entries], return_exceptions=True)


async def test_the_holder_of_a_lock_can_save_something_else_meanwhile(server: EmbeddedPostgreSQL) -> None:
    """Group commit must not tie a save to another caller's locked row: the lock's owner may be waiting for it."""
    async with PostgreSQLStore(server.url, schema_name="tied", timeout=5) as store:
        await store.async_save("n", MemoryEntry(entry_id="locked"))
        with psycopg.connect(server.url) as other:
            other.execute("SELECT 1 FROM tied.memory_entries WHERE entry_id = 'locked' FOR UPDATE")
            waiting = [asyncio.create_task(store.async_save("n", MemoryEntry(entry_id="locked"))) for _ in range(3)]
            await asyncio.gather(*[store.async_save("n", MemoryEntry(content="mine")) for _ in range(20)])
            assert not any(task.done() for task in waiting)
            other.rollback()
        await asyncio.gather(*waiting)
        assert await store.async_count("n") == 21


async def test_a_cancelled_save_gives_its_connection_back(server: EmbeddedPostgreSQL) -> None:
    async with PostgreSQLStore(server.url, schema_name="cancelled", pool_size=1, timeout=5) as store:
        await store.async_save("n", MemoryEntry(entry_id="locked"))
        with psycopg.connect(server.url) as other:
            other.execute("SELECT 1 FROM cancelled.memory_entries WHERE entry_id = 'locked' FOR UPDATE")
            for _ in range(3):
                task = asyncio.create_task(store.async_save("n", MemoryEntry(entry_id="locked", content="late")))
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(task, 0.1)
            assert await store.async_count("n") == 1, "the only connection of the pool is free"
            other.rollback()
        (entry,) = await store.async_load("n")
        assert entry.content is None


async def test_a_pool_of_one_connection_serves_all_callers(server: EmbeddedPostgreSQL) -> None:
    async with PostgreSQLStore(server.url, schema_name="one", pool_size=1) as store:
        await store.async_clear("n")
        await asyncio.gather(*[store.async_save("n", MemoryEntry()) for _ in range(50)])
        counts = await asyncio.gather(*[store.async_count("n") for _ in range(20)])
    assert counts == [50] * 20


@IN_BOTH_MODES
@pytest.mark.parametrize(
    "damage",
    ["content = '{\"~int\": \"zz\"}'", "metadata = '[]'", "scope = 'nowhere'", "created_at = 'infinity'",
     "created_at = '12000-01-01'"],
)  # fmt: skip
def test_a_damaged_row_is_named(
    damage: str, mode: Mode, server: EmbeddedPostgreSQL, using: MakeStoreCaller, run_sql: Callable[[str], list[Any]]
) -> None:
    store = using(PostgreSQLStore(server.url, schema_name="damaged"), mode)
    store("clear", "n")
    store("save", "n", MemoryEntry(entry_id="it"))
    run_sql(f"UPDATE damaged.memory_entries SET {damage} WHERE entry_id = 'it'")
    with pytest.raises(CorruptDataError, match="'it' in namespace 'n'"):
        store("load", "n")
    assert run_sql("SELECT count(*) FROM damaged.memory_entries WHERE entry_id = 'it'") == [(1,)]


@IN_BOTH_MODES
def test_an_infinite_expiry_written_by_hand_means_no_expiry(
    mode: Mode, server: EmbeddedPostgreSQL, using: MakeStoreCaller, run_sql: Callable[[str], list[Any]]
) -> None:
    store = using(PostgreSQLStore(server.url, schema_name="infinite"), mode)
    store("clear", "n")
    store("save", "n", MemoryEntry(expires_at=datetime(2999, 1, 1, tzinfo=UTC)))
    run_sql("UPDATE infinite.memory_entries SET expires_at = 'infinity'")
    assert store("load", "n")[0].expires_at is None


def test_names_too_long_for_an_index_are_refused(server: EmbeddedPostgreSQL) -> None:
    def unlike(start: int) -> str:
        return "".join(chr(0x4E00 + (start + 7919 * number) % 20_000) for number in range(512))

    with PostgreSQLStore(server.url, schema_name="long") as store:
        with pytest.raises(InvalidEntryError, match="too long for an index"):
            store.save(unlike(1), MemoryEntry(key=unlike(2), entry_id=unlike(3)))
        store.save(unlike(1), MemoryEntry(key="short"))
        assert store.count(unlike(1)) == 1
        store.clear(unlike(1))
