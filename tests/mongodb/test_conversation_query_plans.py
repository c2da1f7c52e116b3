"""MongoDB's query plans for conversations."""

from __future__ import annotations

import json
from typing import Any

import pymongo

from firefly_memory import MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.mongodb import pages, queries
from tests.support.backends import Place
from tests.support.flush_chains import make_flush
from tests.support.turns import a_turn


def test_every_query_reads_by_index_and_only_the_documents_it_returns(place: Place) -> None:
    client: pymongo.MongoClient[Any] = pymongo.MongoClient(place.mongodb())
    place.later.callback(client.close)
    client.drop_database("planned")
    with MongoDBStore(place.mongodb(), database="planned") as store:
        log: Any = store.blocking.log(CONVERSATION_LOG)
        for name in ("short", "long"):
            run_without_loop(log.append(name, a_turn(key="first"), None))
            run_without_loop(log.window(name, 200))  # so that the planner knows it short
        for batch in range(10):
            run_without_loop(log.append_all("long", [a_turn(key=f"{batch}-{n}") for n in range(500)], None))
    by_number, by_tokens = "conversation_id_1_life_1_turn_id_1", "conversation_id_1_life_1_tokens_before_1"
    by_key = "conversation_id_1_life_1_idempotency_key_1"
    asked = {
        "window": (queries.window("long", 200), [(by_number, 1), (by_tokens, 20)]),
        "head": (queries.conversation("long"), [(by_number, 1)]),
        "turns": (queries.turns("long", 2_500, 5), [(by_number, 5)]),
        "find": (queries.keyed("long", "5-77"), [(by_key, 1)]),
        "page": (pages.range_of(2, None, None, "created"), [(by_number, 2)]),
    }
    for name, (pipeline, expected) in asked.items():
        explain = {"aggregate": "memory_conversations", "pipeline": _explainable(pipeline), "cursor": {}}
        plan = client.planned.command({"explain": explain, "verbosity": "executionStats"})
        lookups = [stage for stage in plan["stages"] if "$lookup" in stage]
        found = [(stage["indexesUsed"], stage["totalDocsExamined"]) for stage in lookups]
        assert found == [([index], examined) for index, examined in expected], name
        first = json.dumps(plan["stages"][0]["$cursor"]["queryPlanner"]["winningPlan"], default=str)
        assert '"COLLSCAN"' not in first
        assert '"SORT"' not in first
    recent = queries.since(log._tails["long"], "long", 200)
    plan = client.planned.command({"explain": {"find": "memory_conversations", "filter": recent}})
    assert plan["executionStats"]["totalDocsExamined"] == 20 + 2, "the turns, and the conversation twice"
    assert "COLLSCAN" not in json.dumps(plan["queryPlanner"]["winningPlan"], default=str)
    lives = {"distinct": "memory_conversations", "key": "life", "query": {"conversation_id": "long"}}
    assert client.planned.command({"explain": lives})["executionStats"]["totalKeysExamined"] <= 2


def test_dropped_turns_and_flushes_of_others_are_not_read(place: Place) -> None:
    client: pymongo.MongoClient[Any] = pymongo.MongoClient(place.mongodb())
    place.later.callback(client.close)
    client.drop_database("planned_flushes")
    with MongoDBStore(place.mongodb(), database="planned_flushes") as store:
        log: Any = store.blocking.log(CONVERSATION_LOG)
        for name in ("c", "other"):
            run_without_loop(log.append_all(name, [a_turn() for _ in range(500)], None))
            for turns in range(10, 100, 10):
                make_flush(store, name, turns, "summary")
        make_flush(store, "c", 300, None, drops=True)
    explain = {"aggregate": "memory_conversations", "pipeline": _explainable(queries.turns("c", -1, 5)), "cursor": {}}
    plan = client.planned_flushes.command({"explain": explain, "verbosity": "executionStats"})
    (lookup,) = [stage for stage in plan["stages"] if "$lookup" in stage]
    assert lookup["totalDocsExamined"] == 5
    there: Any = client.planned_flushes.memory_conversations.find_one({"_id": "c"})
    one = {"_id": {"life": there["life"], "flush": there["flush_id"]}, "conversation_id": "c"}
    of_life = {"conversation_id": "c", "life": there["life"]}
    for wanted, count in ((one, 1), (of_life, 10)):
        plan = client.planned_flushes.command({"explain": {"find": "memory_flushes", "filter": wanted}})
        assert plan["executionStats"]["totalDocsExamined"] == count
    lives = {"distinct": "memory_flushes", "key": "life", "query": {"conversation_id": "c"}}
    assert client.planned_flushes.command({"explain": lives})["executionStats"]["totalKeysExamined"] <= 2


def _explainable(pipeline: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same look-ups, but not unwound, for then the server counts nothing."""

    def explainable(stage: dict[str, Any]) -> dict[str, Any]:
        path = stage.get("$unwind", {}).get("path")
        return stage if path is None else {"$set": {path[1:]: {"$arrayElemAt": [path, 0]}}}

    return [explainable(stage) for stage in pipeline]
