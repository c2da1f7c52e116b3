"""Damaged rows of feeds in SQL: every operation that meets one names it, and writes nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from firefly_memory import CorruptDataError, PostgreSQLStore, SQLiteStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.feeds.log import FEED_LOG, MOST_MESSAGES
from firefly_memory.feeds.message_stores import SQLMessageStore
from firefly_memory.testing import Mode
from tests.support.backends import Place
from tests.support.databases import execute
from tests.support.store_caller import MakeStoreCaller

NOT_TEXT, NOT_A_NUMBER = "X'00ff'", "'many'"


def damaged(path: Path, table: str, column: str, value: str) -> str:
    """A file in which the feed ``job`` has three messages, with a value that no store has written."""
    with SQLiteStore(path) as store:
        messages = [{"type": "user_message", "agent_key": "a", "is_global": True, "content": n} for n in range(3)]
        SQLMessageStore(store).append_many("job", messages, owner="Ann")
    url = f"sqlite:///{path}"
    execute(url, f"UPDATE {table} SET {column} = {value}")
    return url


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("value", ["'x'", "1.5", "-5", f"{MOST_MESSAGES + 1}", "X'31'"])
def test_messages_are_refused_if_the_newest_number_is_damaged(
    value: str, several: bool, mode: Mode, tmp_path: Path, using: MakeStoreCaller
) -> None:
    url = damaged(tmp_path / "memory.db", "memory_feeds", "newest", value)
    before = [execute(url, f"SELECT * FROM {table}") for table in ("memory_feeds", "memory_feed_messages")]
    store = SQLiteStore(tmp_path / "memory.db")
    used, messages = using(store, mode), SQLMessageStore(store)

    async def append() -> None:
        await asyncio.gather(*[messages.async_append("job", {"n": n}) for n in range(3 if several else 1)])

    with pytest.raises(CorruptDataError, match="feed 'job' is damaged"):
        if mode is Mode.BLOCKING:
            messages.append_many("job", [{"n": n} for n in range(3 if several else 1)])
        else:
            used.runner.run(asyncio.wait_for(append(), 30))
    assert [execute(url, f"SELECT * FROM {table}") for table in ("memory_feeds", "memory_feed_messages")] == before


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_postgresql_refuses_messages_if_the_newest_number_is_too_low(
    driver: str, place: Place, location: str
) -> None:
    async with PostgreSQLStore(place.with_driver(driver), schema_name="feeds_of_tests") as store:
        messages = SQLMessageStore(store)
        await messages.async_append_many(location, [{"n": 1}, {"n": 2}])
        lower = "UPDATE feeds_of_tests.memory_feeds SET newest = 1 WHERE location = %s"
        with psycopg.connect(place.postgresql(), autocommit=True) as server:
            server.execute(lower.encode(), (location,))
        with pytest.raises(CorruptDataError, match=location):
            await messages.async_append(location, {"n": 3})
        assert [item.number for item in await messages.async_get_items(location)] == [1, 2]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("newest", NOT_A_NUMBER),
        ("newest", "1.5"),
        ("newest", "-1"),
        ("dropped", NOT_A_NUMBER),
        ("dropped", "-1"),
        ("owner", NOT_TEXT),
    ],
)
def test_reading_a_damaged_head_is_an_error(column: str, value: str, tmp_path: Path) -> None:
    damaged(tmp_path / "memory.db", "memory_feeds", column, value)
    with SQLiteStore(tmp_path / "memory.db") as store:
        log = store.blocking.log(FEED_LOG)
        for read in (log.feed("job"), log.page(10, "")):
            with pytest.raises(CorruptDataError, match="feed 'job' is damaged"):
                run_without_loop(read)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("message", NOT_TEXT),
        ("message", "'['"),
        ("message", "'[1]'"),
        ("created_at", NOT_TEXT),
        ("created_at", "'soon'"),
        ("number", "number + 0.5"),
        ("agent_key", NOT_TEXT),
    ],
)
def test_reading_a_damaged_message_is_an_error(column: str, value: str, tmp_path: Path) -> None:
    damaged(tmp_path / "memory.db", "memory_feed_messages", column, value)
    with SQLiteStore(tmp_path / "memory.db") as store:
        messages = SQLMessageStore(store)
        reads = (
            messages.get_items,
            messages.get_conversation_messages,
            lambda name: messages.get_conversation_messages(name, 2),
            messages.get_global_messages,
        )
        for read in reads[:1] if column == "created_at" else reads:  # only items have it
            with pytest.raises(CorruptDataError, match=r"message .* of feed 'job' is damaged"):
                read("job")
