"""The operations on feeds in MongoDB: documents, servers and clients."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pymongo
import pytest
from motor.motor_asyncio import AsyncIOMotorClient

from firefly_memory import MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.errors import ConflictError, CorruptDataError, InvalidEntryError
from firefly_memory.feeds.log import FEED_LOG, Feed
from firefly_memory.feeds.mongodb import deletion
from firefly_memory.testing import Mode
from tests.support.backends import Place
from tests.support.mongodb_chunks import Commands
from tests.support.mongodb_commands import AtCommand
from tests.support.mongodb_feeds import DATABASE, NOW, a_message, new_location
from tests.support.servers import EmbeddedMongoDB
from tests.support.store_caller import MakeStoreCaller

Client = pymongo.MongoClient[dict[str, Any]]
Log = Callable[..., Any]
"""``log("append", location, messages, None)`` in either mode."""


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with pymongo.MongoClient[dict[str, Any]](place.mongodb(), tz_aware=True) as client:
        yield client


@pytest.fixture
def opened(place: Place, using: MakeStoreCaller) -> Callable[..., Log]:
    def opened(mode: Mode, url: str | None = None, **options: Any) -> Log:
        store = MongoDBStore(url or place.mongodb(), database=options.pop("database", DATABASE), **options)
        used = using(store, mode)

        def log(operation: str, *arguments: Any) -> Any:
            if mode is Mode.BLOCKING:
                return run_without_loop(getattr(store.blocking.log(FEED_LOG), operation)(*arguments))
            return used.runner.run(getattr(store.suspending.log(FEED_LOG), operation)(*arguments))

        return log

    return opened


@pytest.fixture(params=Mode, ids=str)
def log(request: pytest.FixtureRequest, opened: Callable[..., Log]) -> Log:
    return opened(request.param)


def contents(messages: Any) -> list[str]:
    return [each.message for each in messages]


def numbers(messages: Any) -> list[int]:
    return [each.number for each in messages]


def test_the_documents_are_the_documented_ones(log: Log, client: Client) -> None:
    name = new_location()
    everything = a_message("1", conversation=True, everyone=True)
    assert log("append", name, [everything], "ann") == 1
    assert log("append", name, [a_message("2", None)], None) == 2
    head, first, second = client[DATABASE].memory_feeds.find({"location": name}).sort("number")
    date = NOW.replace(microsecond=123_000)
    instants = {"created_at": date, "created_at_us": 456}
    life = {"location": name, "life": head["life"]}
    assert head == {
        "_id": name,
        **life,
        "dropped": 0,
        **instants,
        "updated_at": date,
        "updated_at_us": 456,
        "owner": "ann",
        "settled": True,
    }
    kinds = {"agents": 1, "conversation": 1, "global": 1}
    message = {"_id": {"message": everything.append_id}, "agent_key": "a", "message": "1"}
    assert first == {**message, **life, "number": 1, **kinds, **instants}
    assert second.keys() == first.keys() - kinds - {"agent_key"}


def test_messages_are_read_by_kind(log: Log) -> None:
    name = new_location()
    for number in range(1, 13):
        key = None if number % 3 == 0 else f"agent {number % 3}"
        log(
            "append",
            name,
            [a_message(str(number), key, conversation=number % 4 == 0, everyone=number % 5 == 0)],
            None,
        )
    assert numbers(log("newest", name, "conversation", (), 2)) == [8, 12]
    assert numbers(log("newest", name, "global", (), None)) == [5, 10]
    assert numbers(log("newest", name, "agents", ["agent 1"], 3)) == [4, 7, 10]
    team = ["agent 2", *(f"other {number}" for number in range(1_000)), "agent 1"]
    assert numbers(log("newest", name, "agents", team, 3)) == [8, 10, 11]
    assert numbers(log("newest", name, "agents", team, None)) == [1, 2, 4, 5, 7, 8, 10, 11]
    assert contents(log("after", name, 9, 2)) == ["10", "11"]
    assert numbers(log("after", name, 2**63, None)) == []
    assert log("newest", new_location(), "agents", team, 3) == log("after", new_location(), 0, None) == []


def test_dropped_messages_leave_their_numbers(log: Log, client: Client) -> None:
    name, later = new_location(), NOW + timedelta(microseconds=1)
    log("append", name, [a_message(str(number)) for number in (1, 2, 3)], None)
    log("append", name, [a_message("4", at=later)], None)
    assert log("first_since", name, later) == 4
    assert log("first_since", name, later + timedelta(microseconds=1)) is None
    assert log("drop", name, 2) == 2
    assert log("drop", name, 2) == 0
    assert log("feed", name) == Feed(name, 4, 2, None, NOW, later)
    assert log("first_since", name, NOW) == 3
    assert log("drop", name, 10) == 2
    assert log("feed", name) == Feed(name, 4, 4, None, NOW, later)
    assert log("after", name, 0, None) == log("newest", name, "agents", ["a"], 3) == []
    assert client[DATABASE].memory_feeds.count_documents({"location": name}) == 1
    assert log("append", name, [a_message("5"), a_message("6")], None) == 6
    assert numbers(log("after", name, 0, None)) == [5, 6]
    assert log("delete", name, 5) is None
    assert log("delete", name, 6) == 2
    assert log("feed", name) is None
    assert client[DATABASE].memory_feeds.count_documents({"location": name}) == 0


def test_many_messages_go_in_several_steps(log: Log, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "MOST_AT_ONCE", 3)
    name = new_location()
    log("append", name, [a_message(str(number)) for number in range(1, 11)], None)
    assert log("drop", name, 5) == 5
    assert numbers(log("after", name, 0, None)) == [6, 7, 8, 9, 10]
    assert log("drop", name, 6) == 1
    assert client[DATABASE].memory_feeds.count_documents({"location": name}) == 1 + 4
    assert log("delete", name) == 4
    assert client[DATABASE].memory_feeds.count_documents({"location": name}) == 0


def test_feeds_are_listed_in_the_order_of_their_names(opened: Callable[..., Log], client: Client) -> None:
    client.drop_database("feeds_listed")
    log = opened(Mode.BLOCKING, database="feeds_listed")
    names = ["Z", "a", "b", "\U0001f600", "\uffff"]
    for name in names:
        log("append", name, [a_message()] * 1, None if name == "a" else "ann")
    assert log("begin", Feed("c", 9, 7, "bob", NOW, NOW))
    assert not log("begin", Feed("c", 9, 7, "bob", NOW, NOW))
    assert log("append", "c", [a_message()], None) == 8
    log("drop", "Z", 1)
    in_order = sorted([*names, "c"])
    assert [each.location for each in log("page", 10, "")] == in_order
    assert [each.location for each in log("page", 2, "a")] == in_order[2:4]
    assert [each.location for each in log("of_owner", "ann", 10, "Z")] == [x for x in in_order[2:] if x != "c"]
    assert log("sizes") == (6, 5)


def test_the_first_writer_decides_the_owner(log: Log) -> None:
    name = new_location()
    assert log("append", name, [a_message()], "ann") == 1
    assert log("append", name, [a_message()], "bob") is None
    assert log("append", name, [a_message(), a_message()], "bob") is None
    assert log("append", name, [a_message(), a_message()], "ann") == 3
    assert log("append", name, [a_message()], None) == 4


def test_a_repeated_append_is_recognised(log: Log) -> None:
    name, single, several = new_location(), a_message(), [a_message(), a_message()]
    assert log("append", name, [single], None) == 1
    assert log("append", name, several, None) == 3
    assert log("append", name, [single], None) == 1
    assert log("append", name, several, None) == 3
    with pytest.raises(ConflictError, match="another feed"):
        log("append", new_location(), [single], None)
    with pytest.raises(ConflictError, match="another feed"):
        log("append", new_location(), several, None)
    assert numbers(log("after", name, 0, None)) == [1, 2, 3]
    part, rest = a_message("part"), a_message("rest")
    log("append", name, [part], None)
    last = log("append", name, [part, rest], None)
    assert contents(log("after", name, last - 2, None)) == ["part", "rest"], "a part is not all of it"
    assert contents(log("after", name, 3, None)) == ["part", "rest"]


def test_a_feed_deleted_by_another_store_starts_anew(opened: Callable[..., Log], client: Client) -> None:
    mine, other = opened(Mode.BLOCKING), opened(Mode.BLOCKING)
    name = new_location()
    for _ in range(3):
        mine("append", name, [a_message()], None)
    other("delete", name)
    assert mine("after", name, 0, None) == []
    mine("append", name, [a_message()], None)
    other("delete", name)
    assert mine("append", name, [a_message()], None) == 1, "though it was last seen with one"
    other("delete", name)
    assert mine("append", name, [a_message(), a_message()], None) == 2
    assert client[DATABASE].memory_feeds.count_documents({"location": name, "number": {"$gt": 0}}) == 2


@pytest.mark.parametrize("others", [1, 3])
@pytest.mark.parametrize("together", [1, 2])
def test_a_number_is_not_given_again_after_another_store_has_dropped_it(
    together: int, others: int, opened: Callable[..., Log], client: Client
) -> None:
    mine, other = opened(Mode.BLOCKING), opened(Mode.BLOCKING)
    name = new_location()
    mine("append", name, [a_message("1")], None)
    for _ in range(others):
        other("append", name, [a_message()], None)
    other("drop", name, 1 + others)
    assert mine("append", name, [a_message(str(each)) for each in range(together)], None) == 1 + others + together
    assert numbers(other("after", name, 0, None)) == [2 + others + each for each in range(together)]
    assert client[DATABASE].memory_feeds.count_documents({"location": name}) == 1 + together


def test_a_message_that_is_too_large_is_refused_and_leaves_nothing(log: Log, client: Client) -> None:
    name = new_location()
    large = a_message("x" * (16 * 1024 * 1024))
    for messages in ([large], [a_message(), large]):
        with pytest.raises(InvalidEntryError, match="message: is larger than the 16 MB"):
            log("append", name, messages, None)
        assert client[DATABASE].memory_feeds.count_documents({"location": name}) == 0
    for _ in range(3):
        log("append", name, [a_message("x" * (6 * 1024 * 1024))], None)
    assert len(log("after", name, 0, None)) == 3, "the answer may be larger than a document"
    log("delete", name)


DAMAGES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"number": 1}, {"$unset": {"message": ""}}),
    ({"number": 1}, {"$set": {"message": 5}}),
    ({"number": 1}, {"$set": {"created_at": "2024"}}),
    ({"number": 1}, {"$set": {"created_at_us": "1"}}),
    ({"number": 1}, {"$set": {"agent_key": 5}}),
    ({"number": 1}, {"$set": {"number": 1.5}}),
    ({"dropped": 0}, {"$set": {"dropped": "none"}}),
    ({"dropped": 0}, {"$unset": {"dropped": ""}}),
    ({"dropped": 0}, {"$set": {"owner": 5}}),
    ({"dropped": 0}, {"$unset": {"life": ""}}),
]


@pytest.mark.parametrize(("which", "damage"), DAMAGES, ids=str)
def test_damaged_documents_are_named(
    which: dict[str, Any], damage: dict[str, Any], opened: Callable[..., Log], client: Client
) -> None:
    log, name = opened(Mode.BLOCKING), new_location()
    log("append", name, [a_message("1")], None)
    client[DATABASE].memory_feeds.update_one({"location": name, **which}, damage)
    for seen in (log, opened(Mode.BLOCKING)):
        with pytest.raises(CorruptDataError, match=name):
            seen("after", name, 0, None)
    client[DATABASE].memory_feeds.delete_many({"location": name})


def test_a_head_that_is_not_found_by_its_location_is_named(opened: Callable[..., Log], client: Client) -> None:
    log, name = opened(Mode.BLOCKING, timeout=20), new_location()
    log("append", name, [a_message("1")], None)
    client[DATABASE].memory_feeds.update_one({"_id": name}, {"$set": {"location": "elsewhere"}})
    for messages in ([a_message()], [a_message(), a_message()]):
        with pytest.raises(CorruptDataError, match=name):
            log("append", name, messages, None)
    client[DATABASE].memory_feeds.delete_one({"_id": name})


# Servers and clients


@pytest.fixture(scope="module")
def standalone() -> Iterator[EmbeddedMongoDB]:
    server = EmbeddedMongoDB(replica_set=False)
    server.start()
    yield server
    server.remove()


@pytest.mark.parametrize("mode", Mode)
def test_a_standalone_server_is_enough(mode: Mode, standalone: EmbeddedMongoDB, opened: Callable[..., Log]) -> None:
    log, name = opened(mode, standalone.url), new_location()
    assert [log("append", name, [a_message()], "ann") for _ in range(3)] == [1, 2, 3]
    assert log("append", name, [a_message(key, key) for key in "bcd"], "ann") == 6
    assert log("append", name, [a_message(), a_message()], "bob") is None
    assert numbers(log("newest", name, "agents", ["a", "b", "c"], 3)) == [3, 4, 5]
    assert numbers(log("newest", name, "agents", [*map(str, range(1_000)), "a", "b"], 3)) == [2, 3, 4]
    assert log("newest", new_location(), "agents", ["a", "b"], 3) == []
    for large in (name, new_location()):
        with pytest.raises(InvalidEntryError):
            log("append", large, [a_message("early"), a_message("x" * (16 * 1024 * 1024 - 200))], None)
        assert "early" not in contents(log("after", large, 0, None))
    assert log("drop", name, 4) == 4
    assert numbers(log("after", name, 0, None)) == [5, 6]
    assert log("delete", name) == 2
    assert log("feed", name) is None
    with pymongo.MongoClient[Any](standalone.url) as client:
        assert client[DATABASE].memory_feeds.count_documents({"location": name}) == 0


def test_a_team_is_read_up_to_one_number_on_a_standalone_server(standalone: EmbeddedMongoDB) -> None:
    """There are no snapshots, and the ranges of the agents are read one after the other."""
    name, before = new_location(), AtCommand()
    with (
        pymongo.MongoClient[Any](standalone.url, event_listeners=[before]) as client,
        MongoDBStore(client=client, database=DATABASE) as store,
        MongoDBStore(standalone.url, database=DATABASE) as other,
    ):
        log = store.blocking.log(FEED_LOG)
        for key in "ab":
            run_without_loop(log.append(name, [a_message(agent_key=key)], None))
        late = other.blocking.log(FEED_LOG).append(name, [a_message(agent_key="b")], None)
        before.arm(2, lambda: run_without_loop(late))
        assert numbers(run_without_loop(log.newest(name, "agents", ["a", "b"], 5))) == [1, 2]
        assert numbers(run_without_loop(log.newest(name, "agents", ["a", "b"], 5))) == [1, 2, 3]


def test_an_append_is_one_command_and_several_messages_are_one_transaction(place: Place) -> None:
    name, commands = new_location(), Commands()
    with (
        pymongo.MongoClient[Any](place.mongodb(), event_listeners=[commands]) as client,
        MongoDBStore(client=client, database=DATABASE) as store,
    ):
        log = store.blocking.log(FEED_LOG)
        run_without_loop(log.append(name, [a_message()], None))
        for count, expected in ((1, ["update"]), (500, ["update", "commitTransaction"])):
            commands.sent.clear()
            run_without_loop(log.append(name, [a_message() for _ in range(count)], None))
            assert [command for command, _ in commands.sent] == expected


@pytest.mark.parametrize("make", [pymongo.AsyncMongoClient, AsyncIOMotorClient])
async def test_clients_of_the_caller_can_be_used(make: Callable[..., Any], place: Place) -> None:
    client = make(place.mongodb())
    store = MongoDBStore(client=client, database=DATABASE)
    log, name = store.suspending.log(FEED_LOG), new_location()
    several = [log.append(name, [a_message(), a_message()], "ann") for _ in range(4)]
    appended = await asyncio.gather(*[log.append(name, [a_message()], "ann") for _ in range(8)], *several)
    assert len(set(appended)) == 12
    assert numbers(await log.after(name, 0, None)) == list(range(1, 17))
    assert await log.newest(name, "agents", ["a", "b"], 2) == (await log.after(name, 14, None))
    assert await log.drop(name, 10) == 10
    assert await log.delete(name) == 6
    await store.close()
    closed: Awaitable[None] | None = client.close()
    if closed is not None:
        await closed
