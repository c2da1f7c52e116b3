"""Connections that PyMongo opened while the servers elected, and uses for no session as long as they live."""

from __future__ import annotations

from time import monotonic
from types import SimpleNamespace
from typing import Any

import pymongo
import pytest
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.errors import ConfigurationError
from pymongo.read_preferences import Nearest

from firefly_memory import MemoryEntry, MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.databases.mongodb.pymongo_cleanup import drop_connections
from firefly_memory.databases.mongodb.transactions import run_in_transaction
from firefly_memory.testing import Mode
from tests.support.backends import Place
from tests.support.mongodb_connections import forget_sessions
from tests.support.servers import EmbeddedMongoDB
from tests.support.store_caller import MakeStoreCaller

DATABASE = "elections"
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
async def test_after_an_election_the_client_has_new_connections(mode: Mode) -> None:
    """PyMongo would go on with a connection of the election, and try a write on it again and again without a pause."""
    server = EmbeddedMongoDB()
    server.start()
    try:
        url = server.url.replace("directConnection=true", "replicaSet=rs0")
        async with MongoDBStore(url, database=DATABASE, timeout=30) as store:
            connection = connection_of(store, mode)
            await connection.result_of(connection["writes"].insert_one({}))
            before = await connection_id(connection)
            assert await connection_id(connection) == before
            with pymongo.MongoClient[Any](server.url) as client:
                client.admin.command({"replSetStepDown": 1, "force": True})
            deadline = monotonic() + 60
            while await connection_id(connection) == before:
                assert monotonic() < deadline, "until the client has heard of the new primary"
            await connection.result_of(connection["writes"].insert_one({}))
    finally:
        server.remove()


async def connection_id(connection: Connection) -> Any:
    """The server's number of the connection that is used now."""
    hello = await connection.result_of(connection.client.admin.command("hello", read_preference=Nearest()))
    return hello["connectionId"]


def test_a_client_that_keeps_its_connections_elsewhere_is_left_alone() -> None:
    drop_connections(SimpleNamespace())
    drop_connections(SimpleNamespace(_topology=SimpleNamespace(_servers={1: SimpleNamespace(pool=None)})))
