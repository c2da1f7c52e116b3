"""Connections that PyMongo opened while the servers elected, and uses for no session as long as they live."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pymongo
import pytest
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.errors import ConfigurationError

from firefly_memory import DatabaseStoreError, MemoryEntry, MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.pymongo_cleanup import drop_connections
from firefly_memory.databases.mongodb.transactions import run_in_transaction
from firefly_memory.testing import Mode
from tests.support.backends import Place
from tests.support.mongodb_connections import forget_sessions, knows_a_primary
from tests.support.servers import EmbeddedMongoDB
from tests.support.store_caller import MakeStoreCaller

DATABASE = "elections"
WRITERS = 4

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


class Inserts:
    """The work of a transaction. It ends with connections that PyMongo uses for no session."""

    def __init__(self, connection: Connection, times: int) -> None:
        self._connection = connection
        self._times = times
        self.done = 0

    async def __call__(self, session: Any) -> None:
        self.done += 1
        inserted = self._connection.entries.insert_one({"namespace": "inserted"}, session=session)
        await self._connection.result_of(inserted)
        if self._times:
            self._times -= 1
            assert forget_sessions(self._connection.client)


@IN_BOTH_MODES
async def test_a_commit_needs_no_connection_of_an_election(mode: Mode, place: Place) -> None:
    async with MongoDBStore(place.mongodb(), database=f"{DATABASE}_{mode.value}") as store:
        connection = connection_of(store, mode)
        await connection.result_of(connection.entries.delete_many({}))
        work = Inserts(connection, 1)
        await run_in_transaction(connection, work, seconds=30)
        assert work.done == 1, "the commit alone is tried again"
        assert await connection.result_of(connection.entries.count_documents({})) == 1
        with pytest.raises(ConfigurationError):
            await run_in_transaction(connection, Inserts(connection, 1), seconds=0)
        assert await connection.result_of(connection.entries.count_documents({})) == 1


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


def test_a_client_that_keeps_its_connections_elsewhere_is_left_alone() -> None:
    drop_connections(SimpleNamespace())
    drop_connections(SimpleNamespace(_topology=SimpleNamespace(_servers={1: SimpleNamespace(pool=None)})))
