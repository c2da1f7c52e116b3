"""Concurrent, cancelled and killed writers of one feed in MongoDB."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymongo
import pytest

from firefly_memory import MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop as run
from firefly_memory.errors import ErasedError, StoreClosedError
from firefly_memory.feeds.log import FEED_LOG, Feed, feed_identity
from firefly_memory.tombstones.log import TOMBSTONES, owner_identity
from tests.support.backends import Place
from tests.support.mongodb_commands import AtCommand
from tests.support.mongodb_feed_worker import TASKS, THREADED, TOGETHER, start
from tests.support.mongodb_feeds import DATABASE, NOW, a_message, new_location
from tests.support.servers import EmbeddedMongoDB
from tests.support.store_worker import killed_after, together

PROCESSES = 8


@contextmanager
def rivals(place: Place, listener: AtCommand) -> Iterator[tuple[Any, Any, Any]]:
    """The log of a store whose commands are listened to, that of another one, and the collection."""
    with (
        pymongo.MongoClient[Any](place.mongodb(), event_listeners=[listener]) as listened,
        MongoDBStore(client=listened, database=DATABASE) as store,
        MongoDBStore(place.mongodb(), database=DATABASE) as other,
        pymongo.MongoClient[Any](place.mongodb()) as client,
    ):
        yield store.blocking.log(FEED_LOG), other.blocking.log(FEED_LOG), client[DATABASE].memory_feeds


def of(name: str) -> dict[str, Any]:
    return {"location": name, "number": {"$exists": True}}


def contents(messages: Any) -> list[str]:
    return [each.message for each in messages]


def is_gap_free(messages: Any) -> bool:
    return [each.number for each in messages] == list(range(1, len(messages) + 1))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("made_again", [False, True])
def test_messages_appended_during_a_deletion_are_there_afterwards(count: int, made_again: bool, place: Place) -> None:
    name, between = new_location(), AtCommand()
    with rivals(place, between) as (mine, others, feeds):

        def delete() -> None:
            assert run(others.delete(name)) == 2
            if made_again:
                run(others.append(name, [a_message("other")], None))

        for content in ("first", "second"):
            run(mine.append(name, [a_message(content)], None))
        between.arm(1, delete)
        assert run(mine.append(name, [a_message("late")] * 1 + [a_message("later")] * (count - 1), None)) is not None
        late = ["late", "later"][:count]
        assert contents(run(others.after(name, 0, None))) == ["other"] * made_again + late
        assert feeds.count_documents(of(name)) == made_again + count, "none in the earlier life"


@pytest.mark.parametrize("count", [1, 2])
def test_a_new_feed_created_by_two_writers_has_the_messages_of_both(count: int, place: Place) -> None:
    name, between = new_location(), AtCommand()
    with rivals(place, between) as (mine, others, _):
        assert run(mine.feed(name)) is None
        between.arm(2, lambda: run(others.append(name, [a_message("other")], None)))
        assert run(mine.append(name, [a_message("mine") for _ in range(count)], None)) == 1 + count
        assert contents(run(others.after(name, 0, None))) == ["other"] + ["mine"] * count


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_feed_is_not_deleted_with_a_message_that_came_meanwhile(number: int, place: Place) -> None:
    name, before = new_location(), AtCommand()
    with rivals(place, before) as (mine, others, _):
        assert run(mine.append(name, [a_message("seen")], None)) == 1
        before.arm(number, lambda: run(others.append(name, [a_message("new")], None)))  # mark, look, deletion
        assert run(mine.delete(name, 1)) is None
        assert contents(run(mine.after(name, 0, None))) == ["seen", "new"]


def test_a_feed_is_not_deleted_with_messages_whose_transaction_is_under_way(place: Place) -> None:
    name, before, deleted = new_location(), AtCommand(), []
    with rivals(place, before) as (mine, others, _):
        run(mine.append(name, [a_message("seen")], None))
        deleting = threading.Thread(target=lambda: deleted.append(run(others.delete(name, 1))))

        def meet() -> None:
            deleting.start()
            deleting.join(0.3)  # it waits for the transaction

        before.arm(2, meet)  # the messages, the commit
        assert run(mine.append(name, [a_message("new"), a_message("newer")], None)) == 3
        deleting.join()
        assert deleted == [None]
        assert contents(run(others.after(name, 0, None))) == ["seen", "new", "newer"]


def test_a_read_of_a_feed_that_was_deleted_and_made_again_gives_the_new_messages(place: Place) -> None:
    name, before = new_location(), AtCommand()
    with rivals(place, before) as (mine, others, _):
        run(mine.append(name, [a_message("old")], None))

        def again() -> None:
            run(others.delete(name))
            run(others.append(name, [a_message("new")], None))

        before.arm(1, again)
        assert contents(run(mine.after(name, 0, None))) == ["new"]
        run(others.append(name, [a_message(content) for content in "abc"], None))
        before.arm(1, lambda: run(others.drop(name, 2)))
        assert contents(run(mine.after(name, 0, 2))) == ["b", "c"]
        before.arm(1, again)
        assert contents(run(mine.newest(name, "agents", ["a", "b"], 5))) == ["new"]


def test_what_interrupted_writes_and_deletions_leave_is_seen_by_nobody(place: Place) -> None:
    name = new_location()
    with rivals(place, AtCommand()) as (mine, others, feeds):
        run(mine.append(name, [a_message(content) for content in "abc"], None))
        head = feeds.find_one({"_id": name})
        feeds.update_one({"_id": name}, {"$set": {"dropped": 2}})  # a deletion that ended here
        assert contents(run(others.after(name, 0, 1))) == ["c"]
        assert contents(run(mine.newest(name, "agents", ["a"], 3))) == ["c"]
        feeds.delete_one({"_id": name})
        assert run(mine.after(name, 0, None)) == []
        assert run(mine.append(name, [a_message("new")], None)) == 1
        assert contents(run(others.after(name, 0, None))) == ["new"]
        assert run(mine.delete(name)) == 1
        assert feeds.count_documents({"location": name}) == 0
        feeds.insert_one({key: head[key] for key in head if key != "settled"})  # a feed that somebody has begun
        assert run(mine.feed(name)) is None
        assert name not in [each.location for each in run(mine.page(1_000, ""))]
        assert run(mine.begin(Feed(name, 0, 4, "ann", NOW, NOW)))
        assert run(others.append(name, [a_message("5")], "ann")) == 5


def test_what_somebody_has_begun_for_another_owner_gives_way(place: Place) -> None:
    name = new_location()
    with rivals(place, AtCommand()) as (mine, _, feeds):
        run(mine.append(name, [a_message()], "bob"))
        feeds.delete_many(of(name))
        feeds.update_one({"_id": name}, {"$unset": {"settled": ""}})
        assert run(mine.append(name, [a_message()], "ann")) in (1, 2)
        assert run(mine.feed(name)).owner == "ann"


def test_what_nobody_sees_of_an_erased_feed_is_deleted(place: Place) -> None:
    begun, of_ann, left, kept = [new_location() for _ in range(4)]
    with rivals(place, AtCommand()) as (mine, _, feeds), MongoDBStore(place.mongodb(), database=DATABASE) as eraser:
        for name, owner in ((begun, None), (of_ann, "ann"), (left, None), (kept, "ann")):
            run(mine.append(name, [a_message()], owner))
        for name in (begun, of_ann):
            feeds.delete_many(of(name))
        feeds.update_many({"_id": {"$in": [begun, of_ann, kept]}}, {"$unset": {"settled": ""}})
        feeds.delete_one({"_id": left})
        tombstones = eraser.blocking.log(TOMBSTONES)
        identities = [feed_identity(begun), feed_identity(left), owner_identity("ann")]
        run(tombstones.add(identities, "ann", NOW))
        run(tombstones.scrub())
        run(tombstones.remove("ann"))
        assert [feeds.count_documents({"location": each}) for each in (begun, of_ann, left, kept)] == [0, 0, 0, 2]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("number", [1, 2])
def test_an_append_to_an_erased_feed_is_refused_whenever_that_is_noticed(number: int, count: int, place: Place) -> None:
    name, before = new_location(), AtCommand()
    with (
        rivals(place, before) as (mine, others, feeds),
        MongoDBStore(place.mongodb(), database=DATABASE) as eraser,
    ):
        run(mine.feed(new_location()))
        before.arm(number, lambda: run(eraser.blocking.log(TOMBSTONES).add([feed_identity(name)], "ann", NOW)))
        with pytest.raises(ErasedError):
            run(mine.append(name, [a_message() for _ in range(count)], None))
        assert feeds.count_documents({"location": name}) == 0
        with pytest.raises(ErasedError):
            run(others.begin(Feed(name, 0, 0, None, NOW, NOW)))
        assert run(others.feed(name)) is None


def test_a_message_that_is_dropped_before_its_feed_is_settled_is_not_appended_again(place: Place) -> None:
    name, before, used = new_location(), AtCommand(), a_message("used")
    with rivals(place, before) as (mine, others, _):
        assert run(mine.append(name, [used], None)) == 1
        before.arm(2, lambda: run(others.drop(name, 2)))  # the messages up to the one that is refused, the head
        assert run(mine.append_each(name, [a_message("dropped"), used], None)) == [2, 3]
        assert contents(run(others.after(name, 0, None))) == ["used"]


def test_a_message_that_is_deleted_with_its_feed_before_it_is_settled_is_appended_again(place: Place) -> None:
    name, before, used = new_location(), AtCommand(), a_message("used")
    with rivals(place, before) as (mine, others, _):
        assert run(mine.append(name, [used], None)) == 1
        before.arm(2, lambda: run(others.delete(name)))
        assert run(mine.append_each(name, [a_message("new"), used], None)) == [1, 2]
        assert contents(run(others.after(name, 0, None))) == ["new", "used"]


def test_a_deletion_waits_for_no_writer(place: Place) -> None:
    name, before = new_location(), AtCommand()
    with rivals(place, before) as (mine, others, feeds):
        run(mine.append(name, [a_message()], None))
        before.arm(3, lambda: run(others.append(name, [a_message()], None)))  # mark, look, deletion
        assert run(mine.delete(name)) == 1
        assert feeds.count_documents({"location": name}) == 0


def test_the_larger_of_two_drops_counts(place: Place) -> None:
    name, before = new_location(), AtCommand()
    with rivals(place, before) as (mine, others, _):
        run(mine.append(name, [a_message(content) for content in "abcd"], None))
        before.arm(2, lambda: run(others.drop(name, 3)))  # a look, the head
        assert run(mine.drop(name, 2)) == 0
        assert run(others.feed(name)).dropped == 3
        assert contents(run(mine.after(name, 0, None))) == ["d"]


def test_messages_of_a_group_are_taken_back_if_the_feed_is_erased_before_it_is_settled(place: Place) -> None:
    name, before, used = new_location(), AtCommand(), a_message()
    with (
        rivals(place, before) as (mine, _, feeds),
        MongoDBStore(place.mongodb(), database=DATABASE) as eraser,
    ):
        run(mine.append(new_location(), [used], None))
        before.arm(3, lambda: run(eraser.blocking.log(TOMBSTONES).add([feed_identity(name)], "ann", NOW)))
        with pytest.raises(ErasedError):  # a look, the messages up to the one that is refused, the head
            run(mine.append_each(name, [a_message(), used], None))
        assert feeds.count_documents({"location": name}) == 0


async def test_an_append_cancelled_at_any_await_is_whole_or_absent_and_can_be_retried(place: Place) -> None:
    at = AtCommand()
    async with (
        pymongo.AsyncMongoClient[Any](place.mongodb(), event_listeners=[at]) as listened,
        MongoDBStore(client=listened, database=DATABASE) as store,
    ):
        log = store.suspending.log(FEED_LOG)
        await log.feed(new_location())
        there = []
        for count, commands in ((1, 2), (2, 3)):  # a look, the messages, and the commit of several
            for number in range(1, commands + 1):
                for answered in (False, True):
                    name, messages = new_location(), [a_message(str(each)) for each in range(count)]
                    task = asyncio.ensure_future(log.append(name, messages, None))
                    at.arm(number, task.cancel, answered=answered)
                    with pytest.raises(asyncio.CancelledError):
                        await task
                    at.arm(0, lambda: None)
                    found = len(await log.after(name, 0, None))
                    assert found in (0, count)
                    there.append(found)
                    assert await log.append(name, messages, None) == count
                    assert len(await log.after(name, 0, None)) == count
        assert (there[0], there[3], there[-1]) == (0, 1, 2)


# Many at once


async def test_tasks_can_append_to_one_feed_at_once(place: Place) -> None:
    async with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        log, name = store.suspending.log(FEED_LOG), new_location()
        messages = [[a_message(f"{number}")] for number in range(32)]
        messages[7] = [a_message("x" * 17 * 1024 * 1024)]
        messages[9] = [a_message("9", "b"), a_message("9", "c")]
        owners = [None, "ann"]
        results = await asyncio.gather(
            *[log.append(name, each, owners[place % 2]) for place, each in enumerate(messages)],
            return_exceptions=True,
        )
        owner = (await log.feed(name) or Feed(name, 0, 0, None, NOW, NOW)).owner
        found = {each.number: each.message for each in await log.after(name, 0, None)}
        assert list(found) == list(range(1, len(found) + 1))
        for place_in_list, (each, number) in enumerate(zip(messages, results, strict=True)):
            if isinstance(number, int):
                assert {found[number - before] for before in range(len(each))} == {each[0].message}
            elif number is None:
                assert owner is None
                assert place_in_list % 2 == 1
            else:
                assert place_in_list == 7
        assert sum(isinstance(each, int) for each in results) == (31 if owner else 16)


async def test_tasks_append_together_on_a_standalone_server() -> None:
    """There messages may come between, and then numbers stay free; but no append is lost or has other numbers."""
    server = EmbeddedMongoDB(replica_set=False)
    server.start()
    try:
        async with MongoDBStore(server.url) as store, MongoDBStore(server.url) as other:
            logs, name = [each.suspending.log(FEED_LOG) for each in (store, other)], new_location()
            calls = [[a_message(f"{number} {n}") for n in range(1 + number % 3)] for number in range(60)]
            results = await asyncio.gather(
                *[logs[number // 2 % 2].append(name, each, None) for number, each in enumerate(calls)]
            )
            found = {each.number: each.message for each in await logs[0].after(name, 0, None)}
            assert len(found) == sum(len(each) for each in calls)
            for last, each in zip(results, calls, strict=True):
                assert last is not None
                assert [found[last - len(each) + 1 + n] for n in range(len(each))] == [one.message for one in each]
            assert await logs[0].delete(name) is not None
            assert await logs[1].after(name, 0, None) == []
    finally:
        server.remove()


def test_processes_of_threads_and_tasks_append_to_one_feed(place: Place) -> None:
    name = new_location()
    together([start(place, name, "at once") for _ in range(PROCESSES)])
    with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        messages = run(store.blocking.log(FEED_LOG).after(name, 0, None))
    assert is_gap_free(messages)
    assert len(messages) == PROCESSES * (THREADED + TASKS + TOGETHER)
    assert contents(messages).count("") == PROCESSES * (THREADED + TASKS)
    in_order = [each.number for each in messages if each.agent_key == "together"]
    for first in range(0, len(in_order), TOGETHER):
        assert in_order[first : first + TOGETHER] == list(range(in_order[first], in_order[first] + TOGETHER))


def test_a_killed_writer_delays_nobody(place: Place) -> None:
    """With a transaction the feed would be locked for a minute and more."""
    name = new_location()
    with MongoDBStore(place.mongodb(), database=DATABASE, timeout=5) as store:
        log = store.blocking.log(FEED_LOG)
        for _ in range(3):
            acknowledged = killed_after(20, start(place, name, "until killed"))
            assert run(log.append(name, [a_message()], None)) is not None
            messages = run(log.after(name, 0, None))
            assert is_gap_free(messages)
            assert len(messages) > int(acknowledged[-1])


def test_a_team_is_read_as_it_was_at_one_moment(place: Place) -> None:
    """Every message is one of these agents', so there is no gap. Those of the second agent come in several answers of the server."""
    name, stop = new_location(), threading.Event()

    def write() -> None:
        with MongoDBStore(place.mongodb(), database=DATABASE) as writer:
            log: Any = writer.blocking.log(FEED_LOG)
            while not stop.is_set():
                for key in "ab":
                    run(log.append(name, [a_message(agent_key=key)], None))

    thread = threading.Thread(target=write)
    with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        log: Any = store.blocking.log(FEED_LOG)
        run(log.append_each(name, [a_message("x" * 100_000, agent_key="b") for _ in range(200)], None))
        thread.start()
        try:
            for _ in range(5):
                assert is_gap_free(run(log.newest(name, "agents", ["a", "b"], None)))
        finally:
            stop.set()
            thread.join()
        assert run(log.delete(name)) > 200


@pytest.mark.thorough
async def test_appends_continue_when_the_primary_steps_down() -> None:
    server = EmbeddedMongoDB()
    server.start()
    try:
        url = server.url.replace("directConnection=true", "replicaSet=rs0")
        async with MongoDBStore(url, timeout=60) as store:
            log, name = store.suspending.log(FEED_LOG), new_location()

            async def keep_appending(count: int) -> None:
                for _ in range(25):
                    assert await log.append(name, [a_message() for _ in range(count)], None) is not None

            async def step_down() -> None:
                with pymongo.MongoClient[Any](server.url) as client:
                    await asyncio.to_thread(client.admin.command, {"replSetStepDown": 1, "force": True})

            await asyncio.gather(*[keep_appending(1 + each % 2) for each in range(4)], step_down())
            messages = await log.after(name, 0, None)
            assert is_gap_free(messages)
            assert len(messages) == 150
    finally:
        server.remove()


def test_calls_of_a_closed_store_are_refused(place: Place) -> None:
    store = MongoDBStore(place.mongodb(), database=DATABASE)
    store.close_sync()
    with pytest.raises(StoreClosedError, match="append_messages"):
        run(store.blocking.log(FEED_LOG).append("c", [a_message()], None))
