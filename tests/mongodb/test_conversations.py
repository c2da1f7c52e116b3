"""The operations on conversations in MongoDB: documents, refusals, indexes, servers and clients."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pymongo
import pytest
from bson import ObjectId
from motor.motor_asyncio import AsyncIOMotorClient

from firefly_memory import (
    ConfigurationError,
    ConflictError,
    CorruptDataError,
    DatabaseStoreError,
    InvalidEntryError,
    MongoDBStore,
    SchemaMismatchError,
)
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG, Appended, Head
from firefly_memory.conversations.mongodb import documents
from firefly_memory.testing import Mode
from tests.support.backends import Place
from tests.support.servers import EmbeddedMongoDB
from tests.support.store_caller import MakeStoreCaller
from tests.support.turns import NOW, a_flush, a_turn, new_id

IN_BOTH_MODES = pytest.mark.parametrize("mode", Mode)
DATABASE = "conversing"

Client = pymongo.MongoClient[dict[str, Any]]
Log = Callable[..., Any]
"""``log("append", conversation_id, draft, None)`` in either mode."""


def turns_of(name: str) -> dict[str, Any]:
    return {"conversation_id": name, "turn_id": {"$exists": True}}


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with pymongo.MongoClient[dict[str, Any]](place.mongodb(), tz_aware=True) as client:
        yield client


@pytest.fixture
def opened(place: Place, using: MakeStoreCaller) -> Callable[..., Log]:
    def opened(mode: Mode, url: str | None = None, **options: Any) -> Log:
        url = None if "client" in options else url or place.mongodb()
        store = MongoDBStore(url, database=options.pop("database", DATABASE), **options)
        used = using(store, mode)

        def log(operation: str, *arguments: Any) -> Any:
            if mode is Mode.BLOCKING:
                return run_without_loop(getattr(store.blocking.log(CONVERSATION_LOG), operation)(*arguments))
            return used.runner.run(getattr(store.suspending.log(CONVERSATION_LOG), operation)(*arguments))

        return log

    return opened


@pytest.fixture(params=Mode, ids=str)
def log(request: pytest.FixtureRequest, opened: Callable[..., Log]) -> Log:
    return opened(request.param)


# What is stored and comes back


def test_appended_turns_come_back_exactly(log: Log) -> None:
    name, draft = new_id(), a_turn("hello \U0001f600", key="once")
    assert log("create", name, NOW)
    assert not log("create", name, NOW)
    assert log("head", name) == Head(name, 0, 0, 0, 0, None, NOW, NOW)
    later = NOW + timedelta(microseconds=1)
    bare = a_turn(tokens=5, at=later)._replace(messages=None, messages_format=None, metadata={})
    assert log("append", name, draft, None) == Appended(1, 10, 0, 0)
    assert log("append", name, bare, 1) == Appended(2, 15, 0, 0)
    turns = [draft._replace(turn_id=0), bare._replace(turn_id=1)]
    assert log("turns", name, -1, None) == turns
    assert log("turns", name, -1, 1) == turns[:1]
    assert log("turns", name, 0, 5) == turns[1:]
    assert log("turns", name, 0, 0) == []
    head = Head(name, 2, 15, 0, 0, None, NOW, later)
    assert log("window", name, 1_000) == (head, turns)
    assert log("head", name) == head
    assert log("find", name, "once") == turns[0]
    assert log("find", name, "twice") is None


def test_the_documents_are_the_documented_ones(log: Log, client: Client) -> None:
    name, draft = new_id(), a_turn("hello", key="once")
    log("append", name, a_turn(at=NOW.replace(microsecond=0)), None)
    log("append", name, draft, None)
    conversation = client[DATABASE].memory_conversations.find_one({"_id": name})
    assert conversation is not None
    life = conversation["life"]
    assert conversation == {
        "_id": name,
        "conversation_id": name,
        "life": life,
        "place": f"2024-05-06T07:08:09.000000+00:00/{name}",
        "active": f"2024-05-06T07:08:09.123456+00:00/{name}",
        "created_at": NOW.replace(microsecond=0),
        "evicted_turns": 0,
        "evicted_tokens": 0,
        "summary": None,
        "claim": None,
        "claimed_until": None,
        "settled": True,
    }
    first, second = client[DATABASE].memory_conversations.find(turns_of(name)).sort("turn_id")
    assert second == {
        "_id": {"turn": draft.append_id},
        "conversation_id": name,
        "life": life,
        "turn_id": 1,
        "tokens": 10,
        "tokens_before": 10,
        "user_prompt": "hello",
        "assistant_response": "",
        "messages": "[1]",
        "messages_format": "json",
        "metadata": draft.metadata,
        "idempotency_key": "once",
        "created_at": NOW.replace(microsecond=123_000),
        "created_at_us": 456,
    }
    assert first.keys() == second.keys() - {"idempotency_key", "created_at_us"}


def test_the_window_is_the_newest_turns_that_fit(log: Log) -> None:
    name = new_id()
    assert log("window", name, 10) is None
    log("create", name, NOW)
    assert log("window", name, 10) == (Head(name, 0, 0, 0, 0, None, NOW, NOW), [])
    for tokens in (1, 20, 3, 4):
        log("append", name, a_turn(tokens=tokens), None)

    def window(budget: int) -> list[int]:
        head, turns = log("window", name, budget)
        assert (head.turns, head.tokens, head.summary) == (4, 28, summary)
        return [turn.tokens for turn in turns]

    summary = None
    windows = {3: [], 4: [4], 6: [4], 7: [3, 4], 26: [3, 4], 27: [20, 3, 4], 28: [1, 20, 3, 4], 2**70: [1, 20, 3, 4]}
    assert {budget: window(budget) for budget in windows} == windows
    assert log("claim", name, "mine", 0, NOW, NOW + timedelta(minutes=1))
    assert log("flush", name, *a_flush("mine", summary := "so far", 2, 21))
    assert [window(budget) for budget in (0, 4, 1_000)] == [[], [4], [3, 4]]


def test_a_claim_has_one_holder_until_it_expires(log: Log) -> None:
    name, minute = new_id(), timedelta(minutes=1)
    log("append", name, a_turn(tokens=7), None)
    assert not log("claim", name, "early", 1, NOW, NOW + minute), "nothing is evicted yet"
    assert log("claim", name, "a", 0, NOW, NOW + minute)
    assert not log("claim", name, "b", 0, NOW, NOW + minute)
    assert log("claim", name, "b", 0, NOW + minute, NOW + 2 * minute)
    assert not log("flush", name, *a_flush("a", "too late", 1, 7))
    log("release", name, "a")
    assert not log("claim", name, "c", 0, NOW + minute, NOW + 2 * minute)
    log("release", name, "b")
    assert log("claim", name, "c", 0, NOW, NOW + minute)
    assert log("flush", name, *a_flush("c", "short", 1, 7))
    assert log("head", name) == Head(name, 1, 7, 1, 7, "short", NOW, NOW, flush_id="c")
    assert log("append", name, a_turn(tokens=7), None) == Appended(2, 14, 7, 1)
    assert log("claim", name, "d", 1, NOW, NOW + minute)
    assert not log("claim", new_id(), "e", 0, NOW, NOW + minute)


@IN_BOTH_MODES
def test_conversations_are_listed_newest_first(mode: Mode, opened: Callable[..., Log], client: Client) -> None:
    client.drop_database("listed")
    log = opened(mode, database="listed")
    instants = [NOW + timedelta(microseconds=microseconds) for microseconds in (0, 1, 1, 2)]
    for name, instant in zip("dbca", instants, strict=True):
        log("create", name, instant)
    log("append", "e", a_turn(tokens=3, at=NOW + timedelta(seconds=1)), None)
    log("claim", "e", "claim", 0, NOW, NOW)
    log("flush", "e", *a_flush("claim", "long", 1, 3))
    half_made = documents.new_conversation("half made", NOW)
    client.listed.memory_conversations.insert_one(half_made)
    heads = log("page", 10, None)
    assert [head.conversation_id for head in heads] == ["e", "a", "c", "b", "d"]
    assert heads[0][:6] == ("e", 1, 3, 1, 3, None)
    assert [head.created_at for head in heads[1:]] == instants[::-1]
    found: list[str] = []
    after = None
    while page := log("page", 2, after):
        found += [head.conversation_id for head in page]
        after = page[-1].created_at, page[-1].conversation_id
    assert found == ["e", "a", "c", "b", "d"]
    assert log("head", "half made") is None
    assert log("window", "half made", 10) is None
    assert log("create", "half made", instants[1])
    assert log("page", 10, None)[2].conversation_id == "half made"
    assert log("append", "half made", a_turn(), 0).turns == 1


# Refusals


def test_an_append_with_another_expected_number_or_a_used_key_is_not_written(log: Log, client: Client) -> None:
    name = new_id()
    assert log("append", name, a_turn(), 1) is None
    assert log("head", name) is None
    assert log("append", name, a_turn(key="k"), 0).turns == 1
    assert log("append", name, a_turn(), 0) is None
    assert log("append", name, a_turn(), 2) is None
    assert log("append", name, a_turn(key="k"), None) is None
    assert log("append", name, a_turn(key="k"), 1) is None
    assert log("append", name, a_turn(key="l"), 1).turns == 2
    assert client[DATABASE].memory_conversations.count_documents(turns_of(name)) == 2


def test_a_turn_that_is_too_large_is_refused_and_leaves_nothing(log: Log, client: Client) -> None:
    name, secret = new_id(), new_id()
    for size in (16 * 1024 * 1024 - 100, 17 * 1024 * 1024):  # the server refuses one, PyMongo the other
        with pytest.raises(InvalidEntryError, match="turn: is larger than the 16 MB") as caught:
            log("append", name, a_turn(secret + "x" * size), None)
        assert secret not in "".join(traceback.format_exception(caught.value)), "nor in any log"
        assert log("head", name) is None
        assert client[DATABASE].memory_conversations.find_one({"_id": name}) is None
    for _ in range(3):
        log("append", name, a_turn("x" * (6 * 1024 * 1024)), None)
    assert len(log("window", name, 1_000)[1]) == 3, "the answer may be larger than a document"
    assert len(log("turns", name, -1, None)) == 3
    log("delete", name)


def test_damaged_documents_are_named(log: Log, client: Client) -> None:
    name, database = new_id(), client[DATABASE]
    for damage in ({"$unset": {"metadata": ""}}, {"$set": {"created_at": "2024"}}, {"$set": {"turn_id": "first"}}):
        log("append", name, a_turn(), None)
        database.memory_conversations.update_one(turns_of(name), damage)
        with pytest.raises(CorruptDataError, match=name):
            log("window", name, 1_000)
        log("delete", name)
    log("append", name, a_turn(), None)
    database.memory_conversations.update_one({"_id": name}, {"$set": {"place": "nowhere"}})
    for operation, arguments in {"head": (), "window": (10,)}.items():
        with pytest.raises(CorruptDataError, match=f"{name}.* is damaged"):
            log(operation, name, *arguments)
    log("delete", name)


# Appending again, and conversations that are deleted meanwhile


def test_a_repeated_append_is_recognised(log: Log) -> None:
    name, draft = new_id(), a_turn(key="k")
    first = log("append", name, draft, 0)
    assert first.turns == 1
    assert log("append", name, draft, 0) == first
    log("append", name, a_turn(), None)
    assert log("append", name, draft, None) == first, "not that of the turn which came after"
    assert log("append", name, draft._replace(idempotency_key=None), None) == first
    assert len(log("turns", name, -1, None)) == 2
    with pytest.raises(ConflictError, match="another conversation"):
        log("append", new_id(), draft, None)


@IN_BOTH_MODES
def test_a_conversation_deleted_by_another_store_starts_anew(
    mode: Mode, opened: Callable[..., Log], client: Client
) -> None:
    mine, other = opened(mode), opened(mode)
    name = new_id()
    for key in "abc":
        mine("append", name, a_turn(key=key), None)
    other("delete", name)
    assert mine("append", name, a_turn(key="a"), None).turns == 1, "though it was last seen with three"
    other("delete", name)
    other("append", name, a_turn(), None)
    assert mine("append", name, a_turn(), None).turns == 2
    other("delete", name)
    assert mine("append", name, a_turn(), 2) is None
    assert mine("append", name, a_turn(), 0).turns == 1
    assert client[DATABASE].memory_conversations.count_documents(turns_of(name)) == 1
    other("delete", name)
    mine("delete", name)
    assert client[DATABASE].memory_conversations.count_documents(turns_of(name)) == 0


def test_turns_left_by_a_dead_writer_are_invisible_until_the_next_deletion_removes_them(
    log: Log, client: Client
) -> None:
    name, turns = new_id(), client[DATABASE].memory_conversations
    left = {"conversation_id": name, "life": ObjectId(), "tokens": 1, "tokens_before": 0}
    turns.insert_many([{**left, "turn_id": number, "idempotency_key": f"k{number}"} for number in range(3)])
    assert log("head", name) is None
    assert log("append", name, a_turn(key="k0"), None).turns == 1
    assert [turn.idempotency_key for turn in log("turns", name, -1, None)] == ["k0"]
    log("delete", name)
    assert turns.count_documents({"conversation_id": name}) == 0


# Servers, clients, indexes


@pytest.fixture(scope="module")
def standalone() -> Iterator[EmbeddedMongoDB]:
    server = EmbeddedMongoDB(replica_set=False)
    server.start()
    yield server
    server.remove()


@IN_BOTH_MODES
def test_a_standalone_server_is_enough(mode: Mode, standalone: EmbeddedMongoDB, opened: Callable[..., Log]) -> None:
    log, name = opened(mode, standalone.url), new_id()
    assert [log("append", name, a_turn(), number).turns for number in range(3)] == [1, 2, 3]
    assert log("append", name, a_turn(), 0) is None
    assert len(log("window", name, 20)[1]) == 2
    log("delete", name)
    assert log("head", name) is None


@pytest.mark.parametrize("make", [pymongo.MongoClient, pymongo.AsyncMongoClient, AsyncIOMotorClient])
async def test_clients_of_the_caller_can_be_used(make: Callable[..., Any], place: Place) -> None:
    client = make(place.mongodb())
    store = MongoDBStore(client=client, database=DATABASE)
    log, name = store.suspending.log(CONVERSATION_LOG), new_id()
    assert await log.create(name, NOW)
    await asyncio.gather(*[log.append(name, a_turn(), None) for _ in range(8)])
    found = await log.window(name, 30)
    assert found is not None
    assert [turn.turn_id for turn in found[1]] == [5, 6, 7]
    assert name in [head.conversation_id for head in await log.page(1_000, None)]
    await log.delete(name)
    assert await log.turns(name, -1, None) == []
    await store.close()
    closed: Awaitable[None] | None = client.close()
    if closed is not None:
        await closed


@IN_BOTH_MODES
def test_missing_indexes_are_reported_or_created(mode: Mode, opened: Callable[..., Log], client: Client) -> None:
    client.drop_database("unindexed")
    cautious = opened(mode, database="unindexed", migrate=False)
    with pytest.raises(SchemaMismatchError) as caught:
        cautious("head", "c")
    for name in ("memory_conversations.place_1", "memory_conversations.conversation_id_1_life_1_turn_id_1"):
        assert name in str(caught.value)
    opened(mode, database="unindexed")("head", "c")
    assert cautious("head", "c") is None
    client.unindexed.memory_conversations.drop_index("conversation_id_1_life_1_turn_id_1")
    with pytest.raises(DatabaseStoreError, match="turn_id_1"):
        opened(mode, database="unindexed", migrate=False)("head", "c")


def test_entries_are_not_stored_among_the_turns() -> None:
    with pytest.raises(ConfigurationError, match="choose another name"):
        MongoDBStore("mongodb://localhost", collection="memory_conversations")
