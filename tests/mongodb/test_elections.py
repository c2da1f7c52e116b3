"""Connections that PyMongo opened while the servers elected, and uses for no session as long as they live."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pymongo
import pytest
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.errors import ConfigurationError

from firefly_memory import MemoryEntry, MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.errors import translated
from firefly_memory.databases.mongodb.pymongo_cleanup import drop_connections
from firefly_memory.databases.mongodb.transactions import run_in_transaction
from firefly_memory.testing import Mode
from tests.support.backends import Place
from tests.support.mongodb_connections import forget_sessions, knows_a_primary
from tests.support.servers import EmbeddedMongoDB
from tests.support.store_caller import MakeStoreCaller

DATABASE = "elections"
WRITERS = 4
ENOUGH = 100
"""Writes after which each of the writers has a connection: one that is opened during the election is another subject."""

IN_BOTH_MODES = pytest.mark.parametrize("mode", Mode)


def connection_of(store: MongoDBStore, mode: Mode) -> Connection:
    return store.database.blocking() if mode is Mode.BLOCKING else store.database.suspending()


@IN_BOTH_MODES
def test_a_transaction_needs_no_connection_of_an_election(mode: Mode, place: Place, using: MakeStoreCaller) -> None:
    store = MongoDBStore(place.mongodb(), database=DATABASE)
    call = using(store, mode)
    call("clear", "n")

    async def forget() -> int:
        return forget_sessions(connection_of(store, mode).client)

    assert (run_without_loop(forget()) if mode is Mode.BLOCKING else call.runner.run(forget())) > 0
    call("save_many", "n", [MemoryEntry(content="one"), MemoryEntry(content="two")])
    assert call("count", "n") == 2


@IN_BOTH_MODES
async def test_a_commit_needs_no_connection_of_an_election(mode: Mode, place: Place) -> None:
    async with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        connection = connection_of(store, mode)
        collection = connection[f"commits_{mode.value}"]
        await connection.result_of(collection.delete_many({}))
        tries = 0

        async def insert(session: Any) -> None:
            nonlocal tries
            tries += 1
            await connection.result_of(collection.insert_one({}, session=session))
            assert forget_sessions(connection.client)

        await run_in_transaction(connection, insert, seconds=30)
        assert tries == 1, "the commit alone is tried again"
        forget_sessions(connection.client)
        with pytest.raises(ConfigurationError):
            await run_in_transaction(connection, insert, seconds=0)
        assert await connection.result_of(collection.count_documents({})) == 1


async def test_a_client_of_motor_needs_no_connection_of_an_election(place: Place) -> None:
    client: Any = AsyncIOMotorClient(place.mongodb())
    try:
        async with MongoDBStore(client=client, database=DATABASE) as store:
            await store.async_clear("motor")
            assert forget_sessions(client)
            await store.async_save_many("motor", [MemoryEntry(content="one"), MemoryEntry(content="two")])
            assert await store.async_count("motor") == 2
    finally:
        client.close()


@pytest.mark.thorough
@IN_BOTH_MODES
async def test_single_writes_continue_after_an_election(mode: Mode) -> None:
    server = EmbeddedMongoDB()
    server.start()
    try:
        url = server.url.replace("directConnection=true", "replicaSet=rs0")
        async with MongoDBStore(url, database=DATABASE, timeout=5) as store:
            await Writers(store, mode).write_while(partial(step_down, server))
    finally:
        server.remove()


def step_down(server: EmbeddedMongoDB) -> None:
    with pymongo.MongoClient[Any](server.url) as client:
        client.admin.command({"replSetStepDown": 1, "force": True})


class Writers:
    """Several, each with a connection of its own."""

    def __init__(self, store: MongoDBStore, mode: Mode) -> None:
        self._connection = connection_of(store, mode)
        self._collection = self._connection["single_writes"]
        self._mode = mode
        self._ended = threading.Event()
        self._written = 0

    async def write_while(self, act: Callable[[], None]) -> None:
        """``act`` makes the server elect. The connections that are idle then are as if PyMongo had just opened them."""
        client = self._connection.client
        await self._connection.result_of(self._collection.delete_many({}))
        async with asyncio.TaskGroup() as tasks:
            for _ in range(WRITERS):
                tasks.create_task(self._write())
            try:
                while self._written < ENOUGH:  # noqa: ASYNC110 - the writers may be threads
                    await asyncio.sleep(0)
                await asyncio.to_thread(act)
                while knows_a_primary(client):  # noqa: ASYNC110 - PyMongo has no event for it
                    await asyncio.sleep(0)
                assert forget_sessions(client)
                await self._ping()
            finally:
                self._ended.set()

    async def _ping(self) -> None:
        """Waits for a primary."""
        await self._connection.result_of(self._connection.client.admin.command("ping"))

    async def _write(self) -> None:
        if self._mode is Mode.BLOCKING:
            await asyncio.to_thread(run_without_loop, self._insert())
        else:
            await self._insert()

    async def _insert(self) -> None:
        while not self._ended.is_set():
            with translated("insert", DATABASE):  # without it, an error of thousands of tries takes minutes to show
                await self._connection.result_of(self._collection.insert_one({}))
            self._written += 1


def test_a_client_that_keeps_its_connections_elsewhere_is_left_alone() -> None:
    drop_connections(SimpleNamespace())
    drop_connections(SimpleNamespace(_topology=SimpleNamespace(_servers={1: SimpleNamespace(pool=None)})))
