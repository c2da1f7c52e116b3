"""Owners of conversations in MongoDB: the plans of the lists, conversations of an earlier version, and interrupted writers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from typing import Any, get_args

import pymongo
import pytest

from firefly_memory import ConversationMemory, MongoDBStore, SchemaMismatchError
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG, Order
from firefly_memory.conversations.mongodb import documents, pages
from tests.support.backends import Place
from tests.support.turns import NOW, a_turn, new_id

DATABASE = "owned"
OWNERS, LIMIT = 1_000, 5

Client = pymongo.MongoClient[dict[str, Any]]


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with pymongo.MongoClient[dict[str, Any]](place.mongodb(), tz_aware=True) as client:
        client.drop_database(DATABASE)
        yield client


@pytest.fixture
def store(place: Place, client: Client) -> Iterator[MongoDBStore]:
    with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        yield store


def log_of(store: MongoDBStore) -> Any:
    return store.blocking.log(CONVERSATION_LOG)


@pytest.mark.parametrize("count", [10, 20_000])
def test_each_list_is_one_range_of_an_index(count: int, store: MongoDBStore, client: Client) -> None:
    store.initialize_sync()
    conversations = client[DATABASE].memory_conversations
    made = (
        documents.settled(documents.new_conversation(f"c{number}", NOW - timedelta(number), f"owner {number % OWNERS}"))
        for number in range(count)
    )
    conversations.insert_many(made)
    for order, owner, after in product(get_args(Order), (None, "owner 3"), (None, f"{NOW.isoformat()}/c4")):
        pipeline, hint = pages.range_of(LIMIT, after, owner, order), pages.index_of(owner, order)
        explained = {"aggregate": conversations.name, "pipeline": pipeline, "cursor": {}, "hint": hint}
        plan = client[DATABASE].command({"explain": explained, "verbosity": "executionStats"})
        cursor = plan["stages"][0]["$cursor"]
        text = json.dumps(cursor["queryPlanner"]["winningPlan"], default=str)
        assert '"COLLSCAN"' not in text
        assert '"SORT"' not in text
        assert [*_index(cursor["queryPlanner"]["winningPlan"])] == [*hint]
        read = min(count, count // OWNERS or 1) if owner else count
        assert cursor["executionStats"]["totalDocsExamined"] <= min(read, LIMIT)


def _index(plan: dict[str, Any]) -> dict[str, Any]:
    """The fields of the index that a plan reads."""
    for name, value in plan.items():
        if name == "keyPattern":
            return dict(value)
        if isinstance(value, dict) and (found := _index(value)):
            return found
    return {}


def test_conversations_of_an_earlier_version_are_listed_by_their_newest_turn(place: Place, client: Client) -> None:
    conversations, version = client[DATABASE].memory_conversations, client[DATABASE].memory_version
    with MongoDBStore(place.mongodb(), database=DATABASE) as store:
        log = log_of(store)
        run_without_loop(log.create("empty", NOW + timedelta(microseconds=7)))
        for number in range(3):
            run_without_loop(log.append("long", a_turn(at=NOW + timedelta(microseconds=100 * number)), None))
        run_without_loop(log.append("short", a_turn(at=NOW.replace(microsecond=0)), None))
        before = run_without_loop(log.page(9, None, None, "updated"))
    assert [head.conversation_id for head in before] == ["long", "empty", "short"]
    conversations.update_many({}, {"$unset": {"active": ""}})
    version.delete_one({"_id": conversations.name})
    cautious = MongoDBStore(place.mongodb(), database=DATABASE, migrate=False)
    with pytest.raises(SchemaMismatchError, match="0006"):
        cautious.initialize_sync()
    cautious.close_sync()
    for _ in range(2):
        with MongoDBStore(place.mongodb(), database=DATABASE) as store:
            assert run_without_loop(log_of(store).page(9, None, None, "updated")) == before
    assert version.find_one({"_id": conversations.name}) == {"_id": conversations.name, "revision": "0006"}
    assert conversations.count_documents({"turn_id": {"$exists": True}, "active": {"$exists": True}}) == 0
    with MongoDBStore(place.mongodb(), database=DATABASE, migrate=False) as cautious:
        assert run_without_loop(log_of(cautious).page(9, None, None, "updated")) == before


@pytest.mark.parametrize("owner", [None, "bob"])
def test_what_a_dead_writer_began_for_another_owner_gives_way(
    owner: str | None, store: MongoDBStore, client: Client
) -> None:
    log = log_of(store)
    store.initialize_sync()
    for begin in ("append", "create"):
        name = new_id()
        client[DATABASE].memory_conversations.insert_one(documents.new_conversation(name, NOW, "ann"))
        assert run_without_loop(log.head(name)) is None
        if begin == "append":
            assert run_without_loop(log.append(name, a_turn(), None, owner)).turns == 1
        else:
            assert run_without_loop(log.create(name, NOW, owner))
        assert run_without_loop(log.head(name)).owner == owner
        assert run_without_loop(log.append(name, a_turn(), None, "ann")) is None


def test_a_process_that_knows_the_conversation_of_before_refuses_and_takes_the_new_owner(
    store: MongoDBStore, place: Place
) -> None:
    name, memory = new_id(), ConversationMemory(store=store)
    with MongoDBStore(place.mongodb(), database=DATABASE) as other:
        others = ConversationMemory(store=other)
        memory.add_turn(name, "p", "a", owner="ann")
        others.clear(name)
        others.add_turn(name, "p", "a", owner="bob")
        log = log_of(store)
        assert run_without_loop(log.append(name, a_turn(), None, "ann")) is None
        memory.add_turn(name, "p", "a", owner="bob")
    assert [turn.turn_id for turn in memory.get_turns(name)] == [0, 1]


def test_a_fork_of_the_first_turns_is_listed_where_they_ended(store: MongoDBStore) -> None:
    log: Any = log_of(store)
    for number in range(3):
        run_without_loop(log.append("source", a_turn(at=NOW + timedelta(days=number)), None, "ann"))
    for turns, day in ((1, 0), (2, 1), (None, 2)):
        assert run_without_loop(log.fork("source", f"fork {turns}", turns, NOW + timedelta(days=9)))
        (found,) = [
            head
            for head in run_without_loop(log.page(9, None, "ann", "updated"))
            if head.conversation_id == f"fork {turns}"
        ]
        assert (found.updated_at, found.owner) == (NOW + timedelta(days=day), "ann")
