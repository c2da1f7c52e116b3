"""Subscribers whose server goes away, or lets no notification through."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, aclosing
from uuid import uuid4

import psycopg
import pymongo
import pytest

from firefly_memory import MongoDBStore, PostgreSQLStore
from firefly_memory.errors import DatabaseConnectionError
from firefly_memory.feeds.log import FEED_LOG
from firefly_memory.feeds.message_form import MessageForm
from firefly_memory.feeds.message_stores import MongoMessageStore, SQLMessageStore, StoredMessages
from tests.support.backends import Place
from tests.support.pgbouncer import PgBouncer
from tests.support.servers import EmbeddedMongoDB, EmbeddedPostgreSQL

pytestmark = pytest.mark.thorough

DRIVERS = pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
TASK = {"type": "task"}


def with_driver(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://")


@DRIVERS
async def test_a_subscriber_goes_on_after_its_number_when_the_server_has_been_restarted(driver: str) -> None:
    server = EmbeddedPostgreSQL()
    seen: list[int] = []
    try:
        server.start()
        url = with_driver(server.url, driver)
        async with PostgreSQLStore(url) as store, PostgreSQLStore(url) as of_the_writer:
            messages, writer = SQLMessageStore(store, notify=True), SQLMessageStore(of_the_writer, notify=True)

            async def read_until(last: int) -> None:
                while not seen or seen[-1] < last:
                    try:
                        async with aclosing(messages.subscribe("here", seen[-1] if seen else 0, every=0.05)) as items:
                            async for item in items:
                                seen.append(item.number)
                                if item.number == last:
                                    break
                    except DatabaseConnectionError:
                        await asyncio.sleep(0.05)

            reading = asyncio.create_task(read_until(40))
            for number in range(1, 41):
                if number in (15, 30):
                    await asyncio.to_thread(server.stop)
                    with pytest.raises(DatabaseConnectionError):
                        await writer.async_append("here", TASK)
                    await asyncio.to_thread(server.start)
                await writer.async_append("here", TASK)
            async with asyncio.timeout(30):
                await reading
            assert seen == list(range(1, 41))
    finally:
        server.remove()


@DRIVERS
async def test_behind_a_pooler_that_shares_by_transaction_subscribers_poll_and_the_log_says_so_once(
    driver: str, place: Place, name: str, caplog: pytest.LogCaptureFixture, admin: psycopg.Connection[object]
) -> None:
    caplog.set_level(logging.INFO, "firefly_memory")
    pooler = PgBouncer(place.postgresql(), "transaction")
    try:
        pooler.start()
        url = with_driver(pooler.url, driver)
        async with PostgreSQLStore(url, schema_name=name, pooler="transaction") as store:
            messages = SQLMessageStore(store, notify=True)
            for _ in range(2):
                await _all_read(messages, place, name)
        (said,) = [each for each in caplog.records if each.name == "firefly_memory.feeds"]
        assert said.levelno == logging.INFO
        assert "the database is polled" in said.getMessage()
        assert "PgBouncer" in said.getMessage()
    finally:
        pooler.remove()


@DRIVERS
async def test_behind_a_pooler_that_shares_by_session_notifications_arrive(
    driver: str, place: Place, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "firefly_memory")
    pooler = PgBouncer(place.postgresql(), "session", pool_size=20, ignore_startup_parameters="options")
    try:
        pooler.start()
        async with PostgreSQLStore(with_driver(pooler.url, driver), schema_name=name, pooler="session") as store:
            await _all_read(SQLMessageStore(store, notify=True), place, name, every=60)
        assert not [each for each in caplog.records if each.name == "firefly_memory.feeds"]
    finally:
        pooler.remove()


async def _all_read(messages: StoredMessages, place: Place, name: str, every: float = 0.05) -> None:
    """Of the messages of a writer who reaches the server without the pooler."""
    location = f"job {uuid4().hex}"
    async with (
        PostgreSQLStore(place.postgresql(), schema_name=name) as direct,
        aclosing(messages.subscribe(location, 0, every=every)) as items,
    ):
        log = SQLMessageStore(direct, notify=True)
        began = asyncio.get_running_loop().time()
        number = 0
        while number < 5 or (every < 1 and asyncio.get_running_loop().time() < began + 3):
            taken = asyncio.create_task(anext(items))
            await asyncio.wait([taken], timeout=0.01)
            number = await log.async_append(location, TASK)
            async with asyncio.timeout(20):
                assert (await taken).number == number


async def test_on_a_standalone_server_of_mongodb_subscribers_poll_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "firefly_memory")
    server = EmbeddedMongoDB(replica_set=False)
    try:
        server.start()
        async with MongoDBStore(server.url) as store, AsyncExitStack() as stack:
            messages = MongoMessageStore(store)
            subscribed = [
                await stack.enter_async_context(aclosing(messages.subscribe("here", 0, every=0.05))) for _ in range(2)
            ]
            for number in range(1, 4):
                taken = [asyncio.create_task(anext(each)) for each in subscribed]
                await asyncio.wait(taken, timeout=0.2)
                await messages.async_append("here", TASK)
                assert [(await each).number for each in taken] == [number, number]
        (said,) = [each for each in caplog.records if each.name == "firefly_memory.feeds"]
        assert "standalone" in said.getMessage()
    finally:
        server.remove()


async def test_a_change_stream_goes_on_when_the_primary_has_stepped_down() -> None:
    server = EmbeddedMongoDB()
    try:
        server.start()
        async with MongoDBStore(server.url) as store, MongoDBStore(server.url) as of_the_writer:
            writer = MongoMessageStore(of_the_writer)
            log = of_the_writer.suspending.log(FEED_LOG)  # which wakes nobody of this process
            await writer.async_get_items("here")
            async with aclosing(MongoMessageStore(store).subscribe("here", 0, every=600)) as items:
                for number in range(1, 11):
                    if number == 5:
                        await asyncio.to_thread(_step_down, server)
                    taken = asyncio.create_task(anext(items))
                    await asyncio.wait([taken], timeout=0.05)
                    assert await log.append("here", [MessageForm(log).new(TASK)], None) == number
                    async with asyncio.timeout(30):
                        assert (await taken).number == number
    finally:
        server.remove()


def _step_down(server: EmbeddedMongoDB) -> None:
    with pymongo.MongoClient[dict[str, object]](server.url) as client:
        client.admin.command({"replSetStepDown": 1, "secondaryCatchUpPeriodSecs": 0, "force": True})
    server.wait_until_it_answers()
