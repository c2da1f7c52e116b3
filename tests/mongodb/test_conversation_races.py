"""Concurrent, cancelled and killed writers of one conversation in MongoDB."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pymongo
import pytest

from firefly_memory import (
    ConflictError,
    ConversationMemory,
    ConversationTurn,
    InvalidEntryError,
    MongoDBStore,
    StoreClosedError,
)
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG, Appended
from tests.support.backends import Place
from tests.support.mongodb_append_worker import DATABASE, start
from tests.support.mongodb_commands import AtCommand
from tests.support.servers import EmbeddedMongoDB
from tests.support.store_worker import killed_after, together
from tests.support.turns import NOW, a_flush, a_turn, is_gap_free, new_id

PROCESSES = 8


@contextmanager
def rivals(place: Place, listener: AtCommand) -> Iterator[tuple[Any, MongoDBStore, MongoDBStore]]:
    """A client that is listened to, a store on it, and another one."""
    with (
        pymongo.MongoClient[Any](place.mongodb(), event_listeners=[listener]) as listened,
        MongoDBStore(client=listened, database=DATABASE) as store,
        MongoDBStore(place.mongodb(), database=DATABASE) as other,
    ):
        yield listened, store, other


@pytest.mark.parametrize("made_again", [False, True])
def test_a_turn_appended_during_a_deletion_is_there_afterwards(made_again: bool, place: Place) -> None:
    name, between = new_id(), AtCommand()
    with rivals(place, between) as (listened, store, other):
        mine, others = store.blocking.log(CONVERSATION_LOG), other.blocking.log(CONVERSATION_LOG)

        def delete() -> None:
            run_without_loop(others.delete(name))
            if made_again:
                run_without_loop(others.append(name, a_turn("other"), None))

        for prompt in ("first", "second"):
            assert run_without_loop(mine.append(name, a_turn(prompt), None)) is not None
        between.arm(1, delete)
        appended = run_without_loop(mine.append(name, a_turn("late"), None))
        assert appended is not None
        assert appended.turns == 1 + made_again
        turns = {"conversation_id": name, "turn_id": {"$exists": True}}
        found = listened[DATABASE].memory_conversations.find(turns).sort("turn_id")
        assert [turn["user_prompt"] for turn in found] == ["other"] * made_again + ["late"]


def test_grouped_turns_are_removed_when_the_conversation_was_deleted(place: Place) -> None:
    with (
        MongoDBStore(place.mongodb(), database=DATABASE) as store,
        MongoDBStore(place.mongodb(), database=DATABASE) as other,
    ):
        mine: Any = store.blocking.log(CONVERSATION_LOG)
        name, used = new_id(), a_turn("used")
        assert run_without_loop(mine.append(new_id(), used, None)) is not None
        assert run_without_loop(mine.append(name, a_turn(), None)) is not None
        run_without_loop(other.blocking.log(CONVERSATION_LOG).delete(name))
        with pytest.raises(ConflictError, match="another conversation"):
            run_without_loop(mine.append_all(name, [a_turn("first"), used], None))
        assert [turn.user_prompt for turn in run_without_loop(mine.turns(name, -1, None))] == ["first"]
        with pymongo.MongoClient[Any](place.mongodb()) as client:
            turns = {"conversation_id": name, "turn_id": {"$exists": True}}
            assert client[DATABASE].memory_conversations.count_documents(turns) == 1, "none in the earlier life"


def test_a_new_conversation_created_by_two_writers_has_both_turns(place: Place) -> None:
    name, between = new_id(), AtCommand()
    with rivals(place, between) as (_, store, other):
        mine, others = store.blocking.log(CONVERSATION_LOG), other.blocking.log(CONVERSATION_LOG)
        assert run_without_loop(mine.window(name, 10)) is None
        between.arm(1, lambda: run_without_loop(others.append(name, a_turn("other"), None)))
        assert run_without_loop(mine.append(name, a_turn("mine"), None)) == Appended(2, 20, 0, 0)
        assert [turn.user_prompt for turn in run_without_loop(mine.turns(name, -1, None))] == ["other", "mine"]


def test_a_claim_does_not_reach_a_recreated_conversation(place: Place) -> None:
    between, name, given = AtCommand(), new_id(), []

    def summarize(turns: list[ConversationTurn]) -> str:
        given.append([turn.user_prompt for turn in turns])
        return "summary"

    with rivals(place, between) as (_, store, other):
        memory = ConversationMemory(store=store, summarizer=summarize, summarize_threshold=300)
        others = ConversationMemory(store=other)
        for number in range(3):
            memory.add_turn(name, f"old {number}", "word " * 200, summarize=False)

        def made_again() -> None:
            others.clear(name)
            others.add_turn(name, "new", "short")

        between.arm(2, made_again)  # after the look, before the claim
        memory.summarize(name)
        assert given == []
        assert others.get_window(name).turns == (0,)
        others.add_turn(name, "next", "word " * 400)
        memory.summarize(name)
        assert given == [["new"]], "nobody holds a claim"


@pytest.mark.parametrize(("number", "is_done"), [(1, False), (2, False), (3, True)])
def test_a_flush_does_not_reach_a_recreated_conversation(number: int, is_done: bool, place: Place) -> None:
    after, name, minute = AtCommand(), new_id(), timedelta(minutes=1)
    with (
        pymongo.MongoClient[Any](place.mongodb(), event_listeners=[after]) as listened,
        MongoDBStore(client=listened, database=DATABASE) as store,
    ):
        log: Any = store.blocking.log(CONVERSATION_LOG)
        for _ in range(5):
            run_without_loop(log.append(name, a_turn("old"), None))
        assert run_without_loop(log.claim(name, "claim", 0, NOW, NOW + minute))

        def made_again() -> None:
            run_without_loop(log.delete(name))
            for count in range(6):
                run_without_loop(log.append(name, a_turn(f"new {count}"), None))

        after.arm(number, made_again, answered=True)  # a look, the flush, the head
        assert run_without_loop(log.flush(name, *a_flush("claim", "summary", 4, 40))) is is_done
        assert run_without_loop(log.append(name, a_turn("new 6"), None)) == Appended(7, 70, 0, 0)
        assert len(run_without_loop(log.window(name, 1_000))[1]) == 7
        assert run_without_loop(log.find_flush(name, "claim")) is None
        assert listened[DATABASE].memory_flushes.count_documents({"conversation_id": name}) == 0


async def test_an_append_cancelled_at_any_await_is_whole_or_absent_and_can_be_retried(place: Place) -> None:
    at = AtCommand()
    async with (
        pymongo.AsyncMongoClient[Any](place.mongodb(), event_listeners=[at]) as listened,
        MongoDBStore(client=listened, database=DATABASE) as store,
    ):
        log = store.suspending.log(CONVERSATION_LOG)
        there = []
        for number in (1, 2):  # a look, the conversation with its turn
            for answered in (False, True):
                name, draft = new_id(), a_turn()
                task = asyncio.ensure_future(log.append(name, draft, None))
                at.arm(number, task.cancel, answered=answered)
                with pytest.raises(asyncio.CancelledError):
                    await task
                head = await log.head(name)
                assert head is None or head.turns == 1
                there.append(head is not None)
                assert await log.append(name, draft, None) == Appended(1, 10, 0, 0)
                assert len(await log.turns(name, -1, None)) == 1
        assert (there[0], there[-1]) == (False, True)


# Many at once


async def test_tasks_can_append_to_one_conversation_at_once(place: Place) -> None:
    async with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        log, name = store.suspending.log(CONVERSATION_LOG), new_id()
        drafts = [a_turn(f"{number}", key=f"key {number % 30}") for number in range(32)]
        drafts[7] = a_turn("x" * 17 * 1024 * 1024)
        results = await asyncio.gather(*[log.append(name, draft, None) for draft in drafts], return_exceptions=True)
        assert isinstance(results[7], InvalidEntryError)
        assert results.count(None) == 2, "there are thirty keys"
        heads = [head for head in results if isinstance(head, Appended)]
        assert sorted(head.turns for head in heads) == list(range(1, 30))
        turns = await log.turns(name, -1, None)
        assert is_gap_free(list(turns))
        numbers = {turn.append_id: turn.turn_id for turn in turns}
        for draft, head in zip(drafts, results, strict=True):
            assert not isinstance(head, Appended) or numbers[draft.append_id] == head.turns - 1
        expecting = await asyncio.gather(*[log.append(name, a_turn(), 29) for _ in range(8)])
        assert [head.turns for head in expecting if head is not None] == [30]


async def test_appends_cancelled_while_they_wait_delay_nobody(place: Place) -> None:
    async with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        log, name = store.suspending.log(CONVERSATION_LOG), new_id()
        tasks = [asyncio.ensure_future(log.append(name, a_turn(f"{number}"), None)) for number in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results[3::3])
        turns = list(await log.turns(name, -1, None))
        assert is_gap_free(turns)
        assert {f"{n}" for n in range(20) if n % 3} <= {turn.user_prompt for turn in turns}
        head = await log.append(name, a_turn(), None)
        assert head is not None
        assert head.turns == len(turns) + 1


def test_eight_processes_of_threads_and_tasks_append_to_one_conversation(place: Place) -> None:
    name = new_id()
    together([start(place, name, "together") for _ in range(PROCESSES)])
    with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        turns = list(run_without_loop(store.blocking.log(CONVERSATION_LOG).turns(name, -1, None)))
    assert is_gap_free(turns)
    assert len({turn.append_id for turn in turns}) == len(turns) == PROCESSES * (10 + 32)


def test_a_killed_writer_delays_nobody(place: Place) -> None:
    """With a transaction the conversation would be locked for a minute and more."""
    name = new_id()
    with MongoDBStore(place.mongodb(), database=DATABASE, timeout=5) as store:
        log = store.blocking.log(CONVERSATION_LOG)
        for _ in range(3):
            process = start(place, name, "until killed")
            acknowledged = killed_after(20, process)
            assert run_without_loop(log.append(name, a_turn(), None)) is not None
            turns = list(run_without_loop(log.turns(name, -1, None)))
            assert is_gap_free(turns)
            assert set(acknowledged) <= {turn.append_id for turn in turns}


async def test_appends_continue_when_the_primary_steps_down() -> None:
    server = EmbeddedMongoDB()
    server.start()
    try:
        url = server.url.replace("directConnection=true", "replicaSet=rs0")
        async with MongoDBStore(url, timeout=60) as store:
            log, name = store.suspending.log(CONVERSATION_LOG), new_id()

            async def keep_appending() -> None:
                for _ in range(25):
                    assert await log.append(name, a_turn(), None) is not None

            async def step_down() -> None:
                with pymongo.MongoClient[Any](server.url) as client:
                    await asyncio.to_thread(client.admin.command, {"replSetStepDown": 1, "force": True})

            await asyncio.gather(*[keep_appending() for _ in range(4)], step_down())
            turns = list(await log.turns(name, -1, None))
            assert is_gap_free(turns)
            assert len(turns) == 100
    finally:
        server.remove()


def test_calls_of_a_closed_store_are_refused(place: Place) -> None:
    store = MongoDBStore(place.mongodb(), database=DATABASE)
    store.close_sync()
    with pytest.raises(StoreClosedError, match="append_turn"):
        run_without_loop(store.blocking.log(CONVERSATION_LOG).append("c", a_turn(), None))


def test_a_conversation_whose_first_turn_is_refused_is_not_made(place: Place) -> None:
    name, other, turn = new_id(), new_id(), a_turn("once")
    with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        log = store.blocking.log(CONVERSATION_LOG)
        run_without_loop(log.append(name, turn, None))
        with pytest.raises(ConflictError, match="was used in another conversation"):
            run_without_loop(log.append(other, turn, None))
        assert run_without_loop(log.head(other)) is None
        assert run_without_loop(log.append(other, a_turn("another"), None)) is not None
