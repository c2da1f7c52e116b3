"""Flushes in MongoDB: what an interrupted one leaves behind, and what its documents look like."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pymongo
import pytest

from firefly_memory import ConversationMemory, MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from tests.support.backends import Place
from tests.support.flush_chains import MINUTE, chain_of, flush_of, make_flush, restored
from tests.support.mongodb_commands import AtCommand
from tests.support.turns import NOW, a_turn, new_id

DATABASE = "flushes"

Client = pymongo.MongoClient[dict[str, Any]]


@pytest.fixture
def store(place: Place) -> Iterator[MongoDBStore]:
    with MongoDBStore(place.mongodb(), database=DATABASE) as opened:
        yield opened


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with pymongo.MongoClient[dict[str, Any]](place.mongodb()) as opened:
        yield opened


def begun(store: MongoDBStore, count: int = 6) -> str:
    name, log = new_id(), store.blocking.log(CONVERSATION_LOG)
    for number in range(count):
        assert run_without_loop(log.append(name, a_turn(f"secret {number}", key=f"key {number}"), None)) is not None
    return name


def turns_of(store: MongoDBStore, name: str) -> list[int]:
    return [turn.turn_id for turn in run_without_loop(store.blocking.log(CONVERSATION_LOG).turns(name, -1, None))]


def test_a_flush_is_a_document_in_the_life_of_its_conversation(store: MongoDBStore, client: Client) -> None:
    name = begun(store)
    first = make_flush(store, name, 2, "two")
    second = make_flush(store, name, 4, None)
    documents = client[DATABASE].memory_flushes.find({"conversation_id": name}).sort("turns")
    conversation = client[DATABASE].memory_conversations.find_one({"_id": name})
    assert conversation is not None
    assert conversation["flush_id"] == second
    shared = {"conversation_id": name, "life": conversation["life"], "strategy": "test"}
    made_at = {"created_at": NOW.replace(microsecond=123_000, tzinfo=None), "created_at_us": 456}
    assert list(documents) == [
        {
            "_id": {"life": conversation["life"], "flush": first},
            **shared,
            "previous": None,
            "turns": 2,
            "turns_before": 0,
            "tokens_before": 0,
            "summary_before": None,
            **made_at,
        },
        {
            "_id": {"life": conversation["life"], "flush": second},
            **shared,
            "previous": first,
            "turns": 4,
            "turns_before": 2,
            "tokens_before": 20,
            "summary_before": "two",
            **made_at,
        },
    ]


def test_dropped_turns_keep_their_number_and_nothing_else(store: MongoDBStore, client: Client) -> None:
    name = begun(store)
    make_flush(store, name, 3, None, drops=True)
    make_flush(store, name, 6, None, drops=True)
    left = list(client[DATABASE].memory_conversations.find({"conversation_id": name, "turn_id": {"$gte": 0}}))
    assert len(left) == 6
    for turn in left:
        assert "secret" not in str(turn)
        assert "idempotency_key" not in turn
        assert (turn["messages"], turn["metadata"]) == (None, {})


def test_a_writer_that_remembers_an_older_end_appends_after_dropped_turns(place: Place) -> None:
    with (
        MongoDBStore(place.mongodb(), database=DATABASE) as one,
        MongoDBStore(place.mongodb(), database=DATABASE) as other,
    ):
        name = begun(one, 2)
        mine, others = one.blocking.log(CONVERSATION_LOG), other.blocking.log(CONVERSATION_LOG)
        for number in range(4):
            assert run_without_loop(others.append(name, a_turn(f"{number}"), None)) is not None
        make_flush(other, name, 5, None, drops=True)
        appended = run_without_loop(mine.append(name, a_turn("mine"), None))
        assert appended is not None
        assert appended.turns == 7
        assert turns_of(one, name) == [5, 6]


@pytest.mark.parametrize("number", range(1, 7))
async def test_a_flush_cancelled_at_any_await_is_whole_or_absent(number: int, place: Place) -> None:
    at = AtCommand()
    async with (
        pymongo.AsyncMongoClient[Any](place.mongodb(), event_listeners=[at]) as listened,
        MongoDBStore(client=listened, database=DATABASE) as store,
    ):
        log, name = store.suspending.log(CONVERSATION_LOG), new_id()
        for count in range(4):
            await log.append(name, a_turn(f"{count}"), None)
        head = await log.head(name)
        assert head is not None
        flush, after = flush_of(head, 3, 30, "summary", drops=True)
        assert await log.claim(name, flush.flush_id, 0, NOW, NOW + MINUTE)
        task = asyncio.ensure_future(log.flush(name, flush, after))
        at.arm(number, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
        found = await log.head(name)
        assert found is not None
        if found.flush_id is None:
            assert found == head
        else:
            assert (found.evicted_turns, found.dropped_turns, found.summary) == (3, 3, "summary")
            assert await log.find_flush(name, flush.flush_id) is not None
            assert [turn.turn_id for turn in await log.turns(name, -1, None)] == [3]


@pytest.fixture
def interrupted(store: MongoDBStore, client: Client) -> str:
    """A conversation whose turns 0 to 2 are dropped, by a process that died before it deleted their contents."""
    name = begun(store)
    make_flush(store, name, 3, None)
    client[DATABASE].memory_conversations.update_one({"_id": name}, {"$set": {"dropped_turns": 3}})
    return name


def test_dropped_turns_that_are_still_there_are_hidden(interrupted: str, store: MongoDBStore) -> None:
    log = store.blocking.log(CONVERSATION_LOG)
    assert turns_of(store, interrupted) == [3, 4, 5]
    assert [turn.turn_id for turn in run_without_loop(log.turns(interrupted, 0, 2))] == [3, 4]
    assert run_without_loop(log.find(interrupted, "key 1")) is None
    assert run_without_loop(log.find(interrupted, "key 3")) is not None
    assert not restored(store, interrupted, chain_of(store, interrupted)[0])
    fork = new_id()
    assert run_without_loop(log.fork(interrupted, fork, None, NOW))
    assert turns_of(store, fork) == [3, 4, 5]


def test_their_keys_are_free(interrupted: str, store: MongoDBStore) -> None:
    log = store.blocking.log(CONVERSATION_LOG)
    appended = run_without_loop(log.append(interrupted, a_turn("again", key="key 1"), None))
    assert appended is not None
    assert appended.turns == 7
    assert run_without_loop(log.append(interrupted, a_turn("again", key="key 4"), None)) is None


def test_the_next_flush_that_drops_turns_deletes_their_contents(
    interrupted: str, store: MongoDBStore, client: Client
) -> None:
    make_flush(store, interrupted, 4, None, drops=True)
    turns = client[DATABASE].memory_conversations.find({"conversation_id": interrupted, "turn_id": {"$lt": 4}})
    assert [turn["user_prompt"] for turn in turns] == [""] * 4


def test_a_flush_that_no_conversation_names_goes_with_the_next_deletion(store: MongoDBStore, client: Client) -> None:
    flushes = client[DATABASE].memory_flushes
    for delete in ("clear", "clear_all"):
        name = begun(store)
        make_flush(store, name, 3, "secret")
        client[DATABASE].memory_conversations.delete_one({"_id": name})  # by an earlier version
        begun(store)
        memory = ConversationMemory(store=store)
        assert flushes.count_documents({"conversation_id": name}) == 1
        memory.clear(name) if delete == "clear" else memory.clear_all()
        assert flushes.count_documents({"conversation_id": name}) == 0
