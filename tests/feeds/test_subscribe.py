"""Subscribers: what other processes write, and what is left when a subscription ends."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from time import monotonic
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import EntryStore, InMemoryStore, PostgreSQLStore, SQLiteStore
from firefly_memory.databases.notifications import no_notifications
from firefly_memory.feeds.flows import FeedFlows
from firefly_memory.feeds.log import FEED_LOG
from firefly_memory.feeds.message_form import MessageForm
from firefly_memory.feeds.message_stores import InMemoryMessageStore, SQLMessageStore, StoredMessages
from firefly_memory.feeds.subscription import Subscription, subscription
from tests.support.backends import Place
from tests.support.subscription_worker import (
    NAME,
    PROCESSES_SHARE,
    a_subscriber,
    a_writer,
    notifying,
    opened,
    told,
    where,
)
from tests.support.workers import Worker

NEVER = 60.0
"""Seconds between looks, much longer than a test may take."""

LOOKS_UNASKED = 2
"""A subscriber looks when it begins, and when notifications begin to arrive."""

DRIVERS = pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])

_LISTENING = "SELECT count(*) FROM pg_stat_activity WHERE query ILIKE 'LISTEN%%' AND datname = current_database()"


@pytest.fixture(
    params=[pytest.param(each, marks=[pytest.mark.thorough] * (each == "psycopg")) for each in PROCESSES_SHARE]
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def url(kind: str, place: Place, new_sqlite_file: Path) -> str:
    return where(kind, place)


@pytest.fixture
async def store(kind: str, url: str) -> AsyncIterator[EntryStore]:
    async with opened(kind, url) as store:
        yield store


async def numbers(items: Subscription, count: int) -> list[int]:
    async with asyncio.timeout(NEVER / 2):
        return [(await anext(items)).number for _ in range(count)]


async def line_of(worker: Worker) -> str:
    return (await asyncio.to_thread(worker.stdout.readline)).strip()


async def test_a_subscriber_skips_and_repeats_nothing_while_four_processes_write(
    kind: str, url: str, store: EntryStore, location: str
) -> None:
    messages = notifying(store)
    async with aclosing(messages.subscribe(location, 0, every=0.05)) as items:
        workers = [a_writer(kind, url, location) for _ in range(4)]
        for each in workers:
            assert await line_of(each) == "ready"
        for each in workers:
            told(each, 25)
        assert await numbers(items, 100) == list(range(1, 101))
        for each in workers:
            await asyncio.to_thread(each.communicate)
            assert each.returncode == 0
    assert await messages.async_get_items(location, 100) == []


async def test_another_process_goes_on_after_the_number_that_was_seen(
    kind: str, url: str, store: EntryStore, location: str
) -> None:
    await notifying(store).async_append_many(location, [{"type": "task"}] * 7)
    for after, count in ((0, 3), (3, 4)):
        worker = a_subscriber(kind, url, location, after, count)
        seen = json.loads(await asyncio.to_thread(worker.communicate))
        assert seen == list(range(after + 1, after + count + 1))


@pytest.mark.parametrize("kind", ["asyncpg", "psycopg", "mongodb"], indirect=True)
async def test_the_database_tells_of_what_another_process_writes(
    kind: str, url: str, store: EntryStore, location: str
) -> None:
    await _is_told(notifying(store), kind, url, location)


@DRIVERS
async def test_an_asynchronous_engine_of_the_caller_is_told_too(driver: str, place: Place, location: str) -> None:
    engine = create_async_engine(place.with_driver(driver), pool_size=1, max_overflow=0)
    async with PostgreSQLStore(engine=engine, schema_name=NAME) as store:
        await _is_told(notifying(store), driver, place.with_driver(driver), location)
    await engine.dispose()


async def _is_told(messages: StoredMessages, kind: str, url: str, location: str) -> None:
    worker = a_writer(kind, url, location)
    assert await line_of(worker) == "ready"
    async with aclosing(messages.subscribe(location, 0, every=NEVER)) as items:
        for number in range(1, LOOKS_UNASKED + 3):
            told(worker, 1)
            assert await numbers(items, 1) == [number]
    await asyncio.to_thread(worker.communicate)


@DRIVERS
async def test_a_connection_that_is_lost_is_made_again(
    driver: str, place: Place, location: str, admin: psycopg.Connection[Any]
) -> None:
    url = place.with_driver(driver)
    async with opened(driver, url) as store:
        worker = a_writer(driver, url, location)
        assert await line_of(worker) == "ready"
        async with aclosing(notifying(store).subscribe(location, 0, every=NEVER)) as items:
            for number in range(1, LOOKS_UNASKED + 2):
                told(worker, 1)
                assert await numbers(items, 1) == [number]
            admin.execute(f"SELECT pg_terminate_backend(pid) {_LISTENING[_LISTENING.index('FROM') :]}".encode())
            for number in range(LOOKS_UNASKED + 2, 2 * LOOKS_UNASKED + 5):
                told(worker, 1)
                assert await numbers(items, 1) == [number]
        await asyncio.to_thread(worker.communicate)


@DRIVERS
@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_subscriber_between_two_writers_waits_for_the_one_with_the_smaller_number(
    driver: str, is_committed: bool, place: Place, location: str
) -> None:
    engine = create_engine(place.with_driver("psycopg"))
    async with opened(driver, place.with_driver(driver)) as store:
        messages = notifying(store)
        await messages.async_get_items(location)
        with engine.connect() as connection:
            first = SQLMessageStore(store.bind(connection), notify=True)  # type: ignore[attr-defined]
            assert first.append(location, {"type": "task", "content": "first"}) == 1
            second = asyncio.create_task(messages.async_append(location, {"type": "task", "content": "second"}))
            async with aclosing(messages.subscribe(location, 0, every=0.05)) as items:
                taken = asyncio.create_task(anext(items))
                await asyncio.wait([taken, second], timeout=0.3)
                assert not taken.done()
                assert not second.done()
                if is_committed:
                    connection.commit()
                    contents = [(await taken).message["content"], (await anext(items)).message["content"]]
                    assert contents == ["first", "second"]
                    assert await second == 2
                else:
                    connection.rollback()
                    item = await taken
                    assert (item.number, item.message["content"]) == (1, "second")
                    assert await second == 1
    engine.dispose()


@pytest.mark.parametrize("kind", ["asyncpg", "mongodb"], indirect=True)
async def test_a_hundred_subscribers_of_one_loop_share_a_connection(
    kind: str, store: EntryStore, location: str, admin: psycopg.Connection[Any]
) -> None:
    messages = notifying(store)
    async with AsyncExitStack() as stack:
        subscriptions = [
            await stack.enter_async_context(aclosing(messages.subscribe(location, 0, every=NEVER))) for _ in range(100)
        ]
        taken = [asyncio.create_task(numbers(each, 3)) for each in subscriptions]
        for _ in range(3):
            await messages.async_append(location, {"type": "task"})
        assert await asyncio.gather(*taken) == [[1, 2, 3]] * 100
        if kind == "asyncpg":
            await _listening(admin, 1)
    if kind == "asyncpg":
        await _listening(admin, 0)
    _no_task_is_left()


@pytest.mark.parametrize("end", ["closed", "cancelled", "forgotten", "store closed"])
async def test_a_subscription_that_ends_leaves_nothing(
    kind: str, store: EntryStore, location: str, end: str, admin: psycopg.Connection[Any]
) -> None:
    messages = notifying(store)
    await messages.async_append(location, {"type": "task"})
    # Nothing but its next look tells a subscriber that the store is closed, where the database tells of nothing.
    items = messages.subscribe(location, 0, every=0.05 if kind == "sqlite" else NEVER)
    assert await numbers(items, 1) == [1]
    waiting = asyncio.create_task(numbers(items, 1))
    await asyncio.wait([waiting], timeout=0.2)
    if end == "store closed":
        await store.close()
    else:
        waiting.cancel()
    await asyncio.wait([waiting])
    if end == "closed":
        await items.aclose()
    del items, waiting
    gc.collect()
    if kind in ("asyncpg", "psycopg"):
        await _listening(admin, 0)
    _no_task_is_left()


async def _listening(admin: psycopg.Connection[Any], count: int) -> None:
    """The server notices soon that a connection has ended."""
    async with asyncio.timeout(10):
        while (found := admin.execute(_LISTENING.replace("%%", "%").encode()).fetchone()) != (count,):
            assert found is not None
            await asyncio.sleep(0.01)


def _no_task_is_left() -> None:
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "firefly-memory notifications"]


@pytest.mark.filterwarnings("ignore:a store was not closed")
def test_a_loop_that_is_closed_under_a_subscription_leaves_nothing(
    kind: str, place: Place, new_sqlite_file: Path, location: str, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(kind, where(kind, place)) as store:
        messages = notifying(store)
        messages.append(location, {"type": "task"})
        loop = asyncio.new_event_loop()
        items = messages.subscribe(location, 0, every=NEVER)
        assert loop.run_until_complete(numbers(items, 1)) == [1]
        loop.run_until_complete(asyncio.sleep(0.3))
        loop.close()
        assert asyncio.run(_first(messages, location)) == 1  # in another loop
    del items
    gc.collect()
    assert not [each for each in caplog.records if each.name == "asyncio"]


async def _first(messages: StoredMessages, location: str) -> int:
    async with aclosing(messages.subscribe(location, 0)) as items:
        return (await anext(items)).number


class _SilentFlows(FeedFlows):
    """The database says that it tells of writes, and no writer notifies."""

    def listening(self, location: str, wake: Any) -> Any:
        arrive = no_notifications()
        arrive.enter_result = lambda: True  # type: ignore[attr-defined]
        return arrive


async def test_a_message_that_nobody_told_of_makes_the_pauses_short_again() -> None:
    store = InMemoryStore()
    log, flows = store.suspending.log(FEED_LOG), _SilentFlows(store.suspending)
    async with aclosing(subscription(flows, "here", 0, 0.05)) as items:
        began = monotonic()
        for number in range(1, 12):
            taken = asyncio.create_task(anext(items))
            await asyncio.wait([taken], timeout=0.01)
            await log.append("here", [MessageForm(log).new({"type": "task"})], None)
            assert (await taken).number == number
        assert monotonic() - began < 11 * 0.5 * 0.75, "as if each had waited for the longer pause"


@pytest.mark.parametrize("make", [lambda _: InMemoryMessageStore(), lambda file: SQLMessageStore(SQLiteStore(file))])
async def test_a_writer_of_the_same_process_wakes_a_subscriber(make: Any, tmp_path: Path) -> None:
    messages = make(tmp_path / "memory.db")
    async with aclosing(messages.subscribe("here", 0, every=NEVER)) as items:
        for number in range(1, 4):
            taken = asyncio.create_task(numbers(items, 1))
            await asyncio.wait([taken], timeout=0.02)
            await asyncio.to_thread(messages.append, "here", {"type": "task"})
            assert await taken == [number]
    await messages.store.close()
