"""The window of a conversation whose end the store remembers, which MongoDB reads in fewer steps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import pymongo
import pytest

from firefly_memory import MongoDBStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.in_memory import KeptConversation
from firefly_memory.conversations.log import CONVERSATION_LOG
from tests.support.backends import Place
from tests.support.turns import NOW, a_flush, a_turn, new_id

pytestmark = pytest.mark.thorough

DATABASE = "windows"


@pytest.fixture
def logs(place: Place) -> Iterator[list[Any]]:
    """Those of two stores, which do not know what the other has seen."""
    with (
        MongoDBStore(place.mongodb(), database=DATABASE) as one,
        MongoDBStore(place.mongodb(), database=DATABASE) as other,
    ):
        yield [one.blocking.log(CONVERSATION_LOG), other.blocking.log(CONVERSATION_LOG)]


@pytest.mark.parametrize("seed", range(10))
def test_the_window_is_current_although_the_store_remembers_an_older_end(seed: int, logs: list[Any]) -> None:
    chance, name = Random(seed), new_id()
    kept = KeptConversation(name, NOW)
    for _ in range(60):
        log, act = (
            chance.choice(logs),
            chance.choice(["append", "append", "append", "append many", "flush", "restore", "delete"]),
        )
        if act.startswith("append"):
            for _ in range(chance.choice([20, 60]) if act == "append many" else 1):
                draft = a_turn(tokens=chance.choice([1, 5, 30]))
                there, expected = run_without_loop(log.append(name, draft, None)), kept.append(draft, None)
                assert expected is not None
                assert (there.turns, there.tokens) == (expected.turns, expected.tokens)
        elif act == "flush" and kept.head.turns - kept.head.evicted_turns > 1:
            turns = chance.randint(kept.head.evicted_turns, kept.head.turns)
            claim = new_id(), kept.head.evicted_turns, NOW, NOW + timedelta(minutes=1)
            tokens = kept.head.tokens - sum(turn.tokens for turn in kept.turns[turns - kept.head.dropped_turns :])
            dropped = turns if chance.random() < 0.3 else kept.head.dropped_turns
            flush, after = a_flush(claim[0], "so far", turns, tokens, dropped=dropped)
            flush = flush._replace(
                previous=kept.head.flush_id,
                turns_before=kept.head.evicted_turns,
                tokens_before=kept.head.evicted_tokens,
                summary_before=kept.head.summary,
            )
            assert kept.claim_summary(*claim)
            assert run_without_loop(log.claim(name, *claim))
            assert kept.flush(flush, after)
            assert run_without_loop(log.flush(name, flush, after))
        elif act == "restore" and kept.head.flush_id is not None:
            newest = kept.head.flush_id
            there = run_without_loop(log.restore(name, newest, kept.flushes[newest]))
            assert there is kept.restore(newest, kept.flushes[newest])
        elif act == "delete" and chance.random() < 0.3:
            run_without_loop(log.delete(name))
            kept = KeptConversation(name, NOW)
        for each in logs:
            budget = chance.choice([0, 1, 10, 40, 300, 2**70])
            assert run_without_loop(each.window(name, budget)) == (kept.window(budget) if kept.head.turns else None)


def test_turns_left_by_an_interrupted_deletion_are_in_no_window(logs: list[Any], place: Place) -> None:
    (mine, other), name = logs, new_id()
    for number in range(3):
        run_without_loop(mine.append(name, a_turn(f"{number}"), None))
    with pymongo.MongoClient[Any](place.mongodb()) as client:
        client[DATABASE].memory_conversations.delete_one({"_id": name})
    run_without_loop(other.append(name, a_turn("anew"), None))
    assert [turn.user_prompt for turn in run_without_loop(mine.window(name, 1_000))[1]] == ["anew"]
    assert run_without_loop(mine.append(name, a_turn("again"), None)).turns == 2
