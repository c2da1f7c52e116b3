"""MongoDB's query plans for feeds: each kind of messages is one range of an index, however long the feed is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pymongo
import pytest

from firefly_memory import MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop as run
from firefly_memory.feeds.log import FEED_LOG
from firefly_memory.feeds.mongodb import queries
from firefly_memory.feeds.mongodb.documents import BY_KIND, BY_NUMBER, OF_OWNER, Tail
from tests.support.mongodb_feeds import NOW, a_message

SIZES = {"short": 1_000, "long": 5_000}
TEAM = [f"agent {number}" for number in range(500)]
LIMIT = 10


@pytest.fixture(scope="module")
def planned(servers_of_the_session: Any) -> Iterator[tuple[Any, dict[str, Tail]]]:
    """A database, and where its feeds end."""
    url, database = servers_of_the_session["mongodb"](), f"feeds_planned_{uuid4().hex}"
    with pymongo.MongoClient[Any](url) as client, MongoDBStore(url, database=database) as store:
        log: Any = store.blocking.log(FEED_LOG)
        for name, size in SIZES.items():
            messages = [
                a_message(
                    "x",
                    TEAM[number % len(TEAM)],
                    conversation=number % 4 == 0,
                    everyone=number % 5 == 0,
                    at=NOW + timedelta(seconds=number),
                )
                for number in range(size)
            ]
            run(log.append_each(name, messages, "ann"))
        yield client[database], log._tails._tails
        client.drop_database(database)


def explained(database: Any, pipeline: Any, index: list[tuple[str, int]]) -> Any:
    """The plan of a pipeline that all goes to the cursor."""
    command = {"aggregate": "memory_feeds", "pipeline": pipeline, "cursor": {}, "hint": dict(index)}
    plan = database.command({"explain": command, "verbosity": "executionStats"})
    return plan if "queryPlanner" in plan else plan["stages"][0]["$cursor"]


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(
    ("which", "keys"), [("conversation", []), ("global", []), ("agents", TEAM[:1]), ("agents", TEAM[:200])]
)
def test_the_newest_messages_of_a_kind_are_read_by_its_index_and_no_others(
    which: Any, keys: list[str], name: str, planned: tuple[Any, dict[str, Tail]]
) -> None:
    database, tails = planned
    plan = explained(database, queries.newest(name, tails[name], which, keys, LIMIT), BY_KIND[which])
    assert plan["executionStats"]["totalDocsExamined"] <= LIMIT
    assert plan["executionStats"]["totalKeysExamined"] <= LIMIT + 2 * len(keys)
    assert '"SORT"' not in json.dumps(plan["queryPlanner"]["winningPlan"], default=str)


def test_a_large_team_reads_so_many_of_each_part(planned: tuple[Any, dict[str, Tail]]) -> None:
    """For a part the planner has a choice: it is explained without the hint, which does not reach it."""
    database, tails = planned
    pipeline = queries.newest("long", tails["long"], "agents", TEAM, LIMIT)
    parts = [each["$unionWith"]["pipeline"] for each in pipeline if "$unionWith" in each]
    assert len(parts) == 2
    for part in parts:
        plan = database.command(
            {"explain": {"aggregate": "memory_feeds", "pipeline": part, "cursor": {}}, "verbosity": "executionStats"}
        )
        assert plan["executionStats"]["totalDocsExamined"] <= LIMIT
        assert '"SORT_MERGE"' in json.dumps(plan["queryPlanner"]["winningPlan"], default=str)


@pytest.mark.parametrize("name", SIZES)
def test_other_queries_read_only_what_they_return(name: str, planned: tuple[Any, dict[str, Tail]]) -> None:
    database, tails = planned
    asked = {
        "after": (queries.after(name, tails[name], 500, LIMIT), LIMIT),
        "newest of all": (queries.newest_of_all(name, tails[name]), 1),
        "since": (queries.since(name, tails[name], NOW + timedelta(seconds=7)), 8),
    }
    for query, (pipeline, documents) in asked.items():
        plan = explained(database, pipeline, BY_NUMBER)
        assert plan["executionStats"]["totalDocsExamined"] == documents, query
    lives = {"distinct": "memory_feeds", "key": "life", "query": {"location": name}}
    assert database.command({"explain": lives})["executionStats"]["totalKeysExamined"] <= 2


@pytest.mark.parametrize("owned", [False, True])
def test_pages_look_up_one_message_of_each_feed(owned: bool, planned: tuple[Any, dict[str, Tail]]) -> None:
    database, _ = planned
    pipeline = queries.page({"owner": "ann"} if owned else {}, "", LIMIT)
    pipeline[-1] = {"$set": {"newest": {"$arrayElemAt": ["$newest", 0]}}}  # not unwound: then the server counts
    hint = dict(OF_OWNER) if owned else {"_id": 1}
    command = {"aggregate": "memory_feeds", "pipeline": pipeline, "cursor": {}, "hint": hint}
    plan = database.command({"explain": command, "verbosity": "executionStats"})
    heads = plan["stages"][0]["$cursor"]["executionStats"]
    (lookup,) = [stage for stage in plan["stages"] if "$lookup" in stage]
    assert heads["totalDocsExamined"] == lookup["totalDocsExamined"] == len(SIZES)
    assert lookup["indexesUsed"] == ["location_1_life_1_number_1"]
