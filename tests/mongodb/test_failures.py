"""R12 for MongoDB: failing servers, logins, indexes and values."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pymongo
import pytest
from bson import ObjectId

from firefly_memory import (
    Capability,
    ConfigurationError,
    CorruptDataError,
    DatabaseConnectionError,
    DatabaseStoreError,
    InvalidEntryError,
    MemoryEntry,
    MongoDBStore,
    NotSupportedError,
    SchemaMismatchError,
    StoreTimeoutError,
)
from firefly_memory.testing import Check, Mode, checks, stopped
from tests.support.backends import Place
from tests.support.durations import quickest
from tests.support.servers import EmbeddedMongoDB, free_port
from tests.support.store_caller import MakeStoreCaller, StoreCaller

pytestmark = pytest.mark.thorough

IN_BOTH_MODES = pytest.mark.parametrize("mode", Mode)
Client = pymongo.MongoClient[dict[str, Any]]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedMongoDB]:
    server = EmbeddedMongoDB()
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="module")
def standalone() -> Iterator[EmbeddedMongoDB]:
    server = EmbeddedMongoDB(replica_set=False)
    server.start()
    yield server
    server.remove()


@pytest.fixture
def client(server: EmbeddedMongoDB) -> Iterator[Client]:
    with pymongo.MongoClient[dict[str, Any]](server.url) as client:
        yield client


# Servers


@IN_BOTH_MODES
def test_a_call_waits_while_the_primary_steps_down(
    mode: Mode,
    server: EmbeddedMongoDB,
    client: Client,
    using: MakeStoreCaller,
) -> None:
    set_url = server.url.replace("directConnection=true", "replicaSet=rs0")
    store = using(MongoDBStore(set_url, timeout=30, database="stepping"), mode)
    store("clear", "n")
    client.admin.command({"replSetStepDown": 1, "force": True})
    store("save", "n", MemoryEntry(content="after the election"))
    assert store("count", "n") == 1


@IN_BOTH_MODES
def test_a_missing_primary_is_a_short_error(
    mode: Mode,
    server: EmbeddedMongoDB,
    client: Client,
    using: MakeStoreCaller,
) -> None:
    store = using(MongoDBStore(server.url, timeout=1, database="stepping"), mode)
    store("clear", "n")
    client.admin.command({"replSetStepDown": 4, "force": True})
    with pytest.raises(DatabaseStoreError) as caught:
        store("save", "n", MemoryEntry(content="too early"))
    assert caught.value.retryable
    assert len(traceback.format_exception(caught.value)) < 500
    server.wait_until_it_answers()


@IN_BOTH_MODES
def test_a_wrong_password_is_an_error_that_does_not_show_it(
    mode: Mode,
    server: EmbeddedMongoDB,
    using: MakeStoreCaller,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    made = MongoDBStore(server.url.replace("mongodb://", "mongodb://somebody:wr0ng-horse@"), timeout=5)
    store = using(made, mode)
    with pytest.raises(DatabaseConnectionError, match="refused the login") as caught:
        store("load", "n")
    assert not caught.value.retryable
    shown = "".join(traceback.format_exception(caught.value)) + repr(made) + caplog.text
    assert "wr0ng-horse" not in shown
    assert "somebody:***@127.0.0.1" in repr(made)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "either url or client"),
        ({"url": "mongodb://h", "client": object()}, "either url or client"),
        ({"url": "http://h"}, "starts with mongodb://"),
        ({"url": "localhost"}, "starts with mongodb://"),
        ({"url": None, "client": "mongodb://h"}, "client must be"),
        ({"url": "mongodb://user:pa/ss:w0rd@h/"}, "PyMongo can read"),
        ({"url": "mongodb://h:port/"}, "PyMongo can read"),
        ({"url": "mongodb://h/?retryWriets=true"}, "Unknown option: retrywriets"),
        ({"url": "mongodb://h", "database": "a b"}, "database or collection"),
        ({"url": "mongodb://h", "collection": ""}, "database or collection"),
        ({"url": "mongodb://h", "pool_size": 0}, "pool_size"),
        ({"url": "mongodb://h", "timeout": "5"}, "timeout"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        MongoDBStore(**arguments)
    assert "w0rd" not in "".join(traceback.format_exception(caught.value))


@IN_BOTH_MODES
def test_an_unreachable_host_is_an_error(mode: Mode) -> None:
    store = StoreCaller(MongoDBStore(f"mongodb://127.0.0.1:{free_port()}/", timeout=0.5), mode)
    with pytest.raises((DatabaseConnectionError, StoreTimeoutError)):
        store("load", "n")
    store.close()


# Standalone servers have no transactions


def test_a_standalone_server_keeps_its_declared_capabilities(standalone: EmbeddedMongoDB) -> None:
    with MongoDBStore(standalone.url) as store:
        promised = store.capabilities
    assert promised == frozenset(Capability) - {Capability.ATOMIC_BATCHES}
    for check in checks(promised):
        if check.rule in ("R2", "R3", "R4", "R5", "R6", "R7") and not _uses_batches(check):
            for mode in Mode:
                check.run(lambda: MongoDBStore(standalone.url), mode)


def _uses_batches(check: Check) -> bool:
    return "save_many" in inspect.getsource(check.body)


@IN_BOTH_MODES
def test_a_batch_on_a_standalone_server_is_refused_instead_of_half_saved(
    mode: Mode,
    standalone: EmbeddedMongoDB,
    using: MakeStoreCaller,
) -> None:
    store = using(MongoDBStore(standalone.url, database="alone"), mode)
    store("clear", "n")
    with pytest.raises(NotSupportedError, match="start mongod with --replSet"):
        store("save_many", "n", [MemoryEntry(), MemoryEntry()])
    assert store("count", "n") == 0
    store("save_many", "n", [MemoryEntry(entry_id="one")])
    assert store("delete_many", "n", ["one", "two"]) == 1


# Documents


def test_an_entrys_document_is_the_documented_one(server: EmbeddedMongoDB, client: Client) -> None:
    moment = datetime(2024, 5, 6, 7, 8, 9, 123_456, UTC)
    with MongoDBStore(server.url, database="shape") as store:
        store.clear("n")
        entry = MemoryEntry(
            entry_id="it",
            key="doc_type",
            content={"a": 1},
            created_at=moment,
            expires_at=moment + timedelta(days=36_500),
        )
        store.save("n", entry)
        (document,) = client.shape.entries.find()
        assert document.pop("_id") == "2024-05-06T07:08:09.123456+00:00/it"
        assert document.pop("expires_at_us") == 456
        assert document == {
            "entry_id": "it",
            "namespace": "n",
            "scope": "working",
            "key": "doc_type",
            "content": {"a": 1},
            "metadata": {},
            "created_at": datetime(2024, 5, 6, 7, 8, 9, 123_000),  # noqa: DTZ001 - as PyMongo gives dates by default
            "expires_at": datetime(2124, 4, 12, 7, 8, 9, 123_000),  # noqa: DTZ001
            "importance": 0.5,
        }
        assert store.load("n") == [entry]
        store.save("n", MemoryEntry(entry_id="it"))
        (document,) = client.shape.entries.find()
        assert document["expires_at"] is None
        assert document["key"] is None
        assert "expires_at_us" not in document


def test_the_indexes_are_the_documented_ones_and_two_more(server: EmbeddedMongoDB, client: Client) -> None:
    with MongoDBStore(server.url, database="indexes"):
        pass
    information = client.indexes.entries.index_information()
    found = {
        (tuple(index["key"]), index.get("unique", False), str(_plain(index.get("partialFilterExpression"))))
        for index in information.values()
    }
    with_key, with_expiry = "{'key': {'$exists': True}}", "{'expires_at': {'$exists': True}}"
    assert found == {
        ((("_id", 1),), False, "None"),
        ((("namespace", 1),), False, "None"),
        ((("namespace", 1), ("key", 1)), False, with_key),
        ((("expires_at", 1),), False, with_expiry),
        ((("entry_id", 1),), True, "None"),
        ((("namespace", 1), ("_id", 1)), False, "None"),
        ((("namespace", 1), ("key", 1), ("_id", 1)), False, with_key),
    }


def _plain(value: Any) -> Any:
    return {key: _plain(inner) for key, inner in value.items()} if isinstance(value, dict) else value


@IN_BOTH_MODES
def test_missing_indexes_are_created_or_reported(
    mode: Mode,
    server: EmbeddedMongoDB,
    client: Client,
    using: MakeStoreCaller,
) -> None:
    client.drop_database("missing")
    store = using(MongoDBStore(server.url, database="missing", migrate=False), mode)
    with pytest.raises(SchemaMismatchError, match=r"needs the indexes .*entry_id_1.*initialize\(migrate=True\)"):
        store("load", "n")
    assert client.missing.entries.index_information() == {}
    with MongoDBStore(server.url, database="missing"):
        pass
    assert store("load", "n") == []


def test_a_conflicting_index_is_reported(server: EmbeddedMongoDB, client: Client) -> None:
    client.drop_database("in_the_way")
    client.in_the_way.entries.create_index("entry_id")  # not unique
    store = MongoDBStore(server.url, database="in_the_way")
    with pytest.raises(DatabaseStoreError, match=r"index .* is in the way"):
        store.initialize_sync()
    store.close_sync()


@IN_BOTH_MODES
def test_a_value_over_sixteen_megabytes_is_refused_before_anything_is_written(
    mode: Mode,
    server: EmbeddedMongoDB,
    using: MakeStoreCaller,
) -> None:
    store = using(MongoDBStore(server.url, database="large"), mode)
    store("clear", "n")
    store("save", "n", MemoryEntry(entry_id="it", content="old"))
    large = "x" * (17 * 1024 * 1024)
    with pytest.raises(InvalidEntryError, match="16 MB"):
        store("save", "n", MemoryEntry(entry_id="it", content=large))
    with pytest.raises(InvalidEntryError, match="16 MB"):
        store("save_many", "n", [MemoryEntry(content="beside"), MemoryEntry(content=large)])
    assert [entry.content for entry in store("load", "n")] == ["old"]
    store("save", "n", MemoryEntry(content="x" * (15 * 1024 * 1024)))
    assert len(store("load", "n")[1].content) == 15 * 1024 * 1024


async def test_a_value_that_is_too_large_fails_alone(server: EmbeddedMongoDB) -> None:
    async with MongoDBStore(server.url, database="large") as store:
        await store.async_clear("n")
        entries = [MemoryEntry(content="x" * (17 * 1024 * 1024) if number == 5 else number) for number in range(10)]
        results = await asyncio.gather(*[store.async_save("n", entry) for entry in entries], return_exceptions=True)
        assert [type(result) for result in results] == [InvalidEntryError if n == 5 else type(None) for n in range(10)]
        assert await store.async_count("n") == 9


@IN_BOTH_MODES
@pytest.mark.parametrize(
    "damage",
    [{"content": ObjectId()}, {"content": {"~int": "zz"}}, {"scope": "nowhere"}, {"importance": 7}, {"metadata": []},
     {"created_at": "2024-01-01T00:00:00Z"}, {"expires_at": "2999-01-01"}],
)  # fmt: skip
def test_a_damaged_document_is_named(
    damage: dict[str, Any],
    mode: Mode,
    server: EmbeddedMongoDB,
    client: Client,
    using: MakeStoreCaller,
) -> None:
    store = using(MongoDBStore(server.url, database="damaged"), mode)
    store("clear", "n")
    store("save", "n", MemoryEntry(entry_id="it", key="k"))
    client.damaged.entries.update_one({"entry_id": "it"}, {"$set": damage})
    if "expires_at" in damage:  # text is no date, so it never compares as later than one
        assert store("load", "n") == []
    else:
        with pytest.raises(CorruptDataError, match="it"):
            store("load", "n")
    (document,) = client.damaged.entries.find()
    assert document.items() >= damage.items()


def test_documents_changed_by_hand_are_read_as_changed(server: EmbeddedMongoDB, client: Client) -> None:
    with MongoDBStore(server.url, database="by_hand") as store:
        store.clear("n")
        store.save("n", MemoryEntry(entry_id="it"))
        other = datetime(2001, 2, 3, tzinfo=UTC)
        client.by_hand.entries.update_one({"entry_id": "it"}, {"$set": {"created_at": other}})
        assert store.load("n")[0].created_at == other
        client.by_hand.entries.update_one({"entry_id": "it"}, {"$set": {"namespace": "m"}})
        assert store.load("m")[0].entry_id == "it"


@IN_BOTH_MODES
def test_saves_replace_expired_entries_with_the_same_ids(
    mode: Mode,
    server: EmbeddedMongoDB,
    using: MakeStoreCaller,
) -> None:
    store = using(MongoDBStore(server.url, database="way"), mode)
    with stopped() as clock:
        for number in range(6):
            store("save", "old", MemoryEntry(entry_id=f"id-{number}", expires_at=clock.now() + timedelta(minutes=1)))
        clock.advance(minutes=1)
        store("save_many", "new", [MemoryEntry(entry_id=f"id-{number}") for number in range(6)])
        assert store("count", "new") == 6
        assert store("count", "old") == 0
    store("clear", "new")


def test_reads_use_the_primary_and_writes_are_durable_whatever_the_client_says(place: Place) -> None:
    with pymongo.MongoClient[Any](place.mongodb(), w=0, readPreference="secondary") as careless:
        store = MongoDBStore(client=careless, database="careless")
        connection = store.database.blocking()
        assert connection.entries.write_concern.document == {"w": "majority", "j": True}
        assert connection.entries.read_preference == pymongo.ReadPreference.PRIMARY
        store.save("n", MemoryEntry())
        assert store.count("n") >= 1
        store.close_sync()
        assert careless.admin.command("ping")["ok"] == 1, "a passed client is not closed"


def test_documents_that_another_transaction_holds_cost_one_time_out(server: EmbeddedMongoDB, client: Client) -> None:
    """As that of a killed process does, for a minute."""
    with MongoDBStore(server.url, database="held", timeout=0.5) as store:
        entry = MemoryEntry(content="mine")
        store.save("n", entry)
        with client.start_session() as session, session.start_transaction():
            client.held.entries.update_one(
                {"entry_id": entry.entry_id}, {"$set": {"content": "theirs"}}, session=session
            )
            with pytest.raises(StoreTimeoutError, match="another transaction holds") as caught:
                store.save_many("n", [entry.model_copy(update={"content": "new"}), MemoryEntry(content="other")])
            session.abort_transaction()
        assert caught.value.retryable
        assert [each.content for each in store.load("n")] == ["mine"]
        store.clear("n")


def test_an_unreachable_server_costs_one_time_out() -> None:
    def wait() -> float:
        start = time.perf_counter()
        with pytest.raises(DatabaseConnectionError), MongoDBStore(f"mongodb://127.0.0.1:{free_port()}", timeout=1):
            pass
        return time.perf_counter() - start

    assert quickest(wait, enough=1.8) < 1.8
