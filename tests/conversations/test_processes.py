"""Conversations and working memory in several processes: concurrent appends, kill -9, one summary."""

from __future__ import annotations

import json
from collections import Counter
from uuid import uuid4

import pytest

from firefly_memory import Capability, ConversationMemory, EntryStore, WorkingMemory, adapt
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from tests.support.backends import OWN, Backend, Place
from tests.support.flush_chains import chain_of
from tests.support.store_worker import killed_after, start, together
from tests.support.turns import a_flush

pytestmark = pytest.mark.thorough

SHARED = pytest.mark.parametrize(
    "backend", [backend for backend in OWN if Capability.SHARED in backend.capabilities], ids=str
)
PROCESSES = 8
EACH = 25


@SHARED
@pytest.mark.parametrize("work", ["append_turns", "append_turns_from_tasks"])
def test_eight_processes_that_append_at_once_lose_no_turn_and_leave_no_gap(
    backend: Backend, work: str, place: Place
) -> None:
    conversation = f"shared:{uuid4().hex}"
    together([start(backend, place, work, conversation, f"p{number}", EACH) for number in range(PROCESSES)])
    memory = ConversationMemory(store=backend.open(place))
    turns = memory.get_turns(conversation)
    assert [turn.turn_id for turn in turns] == list(range(PROCESSES * EACH))
    expected = {f"p{process} {number}" for process in range(PROCESSES) for number in range(EACH)}
    assert Counter(turn.user_prompt for turn in turns) == Counter(expected)
    if work == "append_turns":
        for process in range(PROCESSES):
            own = [turn.user_prompt for turn in turns if turn.user_prompt.startswith(f"p{process} ")]
            assert own == [f"p{process} {number}" for number in range(EACH)], "each in its own order"
    assert memory.get_total_tokens(conversation) == sum(turn.token_estimate for turn in turns)
    memory.clear(conversation)
    memory.store.close_sync()


@SHARED
def test_every_acknowledged_turn_survives_kill_9(backend: Backend, place: Place) -> None:
    conversation = f"killed:{uuid4().hex}"
    acknowledged: list[int] = []
    for _ in range(3):
        worker = start(backend, place, "append_until_killed", conversation)
        acknowledged += map(int, killed_after(15, worker))
    memory = ConversationMemory(store=backend.open(place))
    turns = memory.get_turns(conversation)
    assert [turn.turn_id for turn in turns] == list(range(len(turns)))
    assert set(acknowledged) <= set(range(len(turns)))
    assert len(acknowledged) == len(set(acknowledged))
    assert len(turns) <= len(acknowledged) + 3, "at most the one in flight was stored without a word"
    assert memory.get_message_history(conversation) == ["message"] * len(turns)
    memory.clear(conversation)
    memory.store.close_sync()


@SHARED
def test_processes_that_summarize_at_once_summarize_each_turn_once(backend: Backend, place: Place) -> None:
    conversation = f"summarized:{uuid4().hex}"
    workers = [start(backend, place, "append_and_summarize", conversation, f"p{number}", 20) for number in range(3)]
    calls = [call for printed in together(workers) for call in json.loads(printed)]
    memory = ConversationMemory(store=backend.open(place))
    turns = memory.get_turns(conversation)
    assert [turn.turn_id for turn in turns] == list(range(60))
    summarized = sorted(turn_id for call in calls for turn_id in call if turn_id >= 0)
    assert len(calls) > 2
    assert summarized == list(range(len(summarized))), "each turn once, none twice"
    summary = memory.get_summary(conversation)
    assert summary is not None
    assert summary.split() == [turn.assistant_response for turn in turns[: len(summarized)]]
    window = memory.get_window(conversation)
    assert window.turns == tuple(range(len(summarized), 60))
    memory.clear(conversation)
    memory.store.close_sync()


def assert_flushed_once(store: EntryStore, conversation: str, flush_ids: list[str], unknown: int = 0) -> None:
    """Whether the chain has each of ``flush_ids``, at most so many ``unknown`` ones, and each turn in one flush."""
    chain = chain_of(store, conversation)[::-1]
    in_force = [flush.flush_id for flush in chain]
    assert len(set(in_force)) == len(in_force)
    assert set(flush_ids) <= set(in_force)
    assert len(in_force) <= len(flush_ids) + unknown
    assert [flush.turns_before for flush in chain] == [0, *[flush.turns for flush in chain[:-1]]]
    assert [flush.summary_before for flush in chain[1:]] == [f"{flush.turns} turns" for flush in chain[:-1]]
    head = run_without_loop(store.blocking.log(CONVERSATION_LOG).head(conversation))
    assert head is not None
    assert (head.evicted_turns, head.summary) == (chain[-1].turns, f"{chain[-1].turns} turns")
    turns = ConversationMemory(store=store).get_turns(conversation)
    assert [turn.turn_id for turn in turns] == list(range(head.dropped_turns, head.turns))
    assert head.live_tokens == sum(turn.token_estimate for turn in turns if turn.turn_id >= head.evicted_turns)


@SHARED
def test_eight_processes_that_append_and_flush_flush_each_turn_once(backend: Backend, place: Place) -> None:
    conversation = f"flushed:{uuid4().hex}"
    work = [start(backend, place, "append_and_flush", conversation, f"p{number}", EACH) for number in range(PROCESSES)]
    flush_ids = [flush_id for printed in together(work) for flush_id in printed.split()]
    assert len(flush_ids) > 5
    with adapt(backend.open(place)) as store:
        assert_flushed_once(store, conversation, flush_ids)
        head = run_without_loop(store.blocking.log(CONVERSATION_LOG).head(conversation))
        assert head is not None
        assert head.turns == PROCESSES * EACH
        ConversationMemory(store=store).clear(conversation)


@SHARED
def test_a_flush_whose_process_is_killed_is_whole_or_absent(backend: Backend, place: Place) -> None:
    conversation = f"killed:{uuid4().hex}"
    flush_ids: list[str] = []
    with adapt(backend.open(place)) as store:
        for killed in range(3):
            flush_ids += killed_after(5, start(backend, place, "append_and_flush", conversation, f"k{killed}", 0))
            assert_flushed_once(store, conversation, flush_ids, unknown=killed + 1)
        ConversationMemory(store=store).clear(conversation)


@SHARED
def test_the_claim_of_a_killed_summarizer_expires(backend: Backend, place: Place) -> None:
    from firefly_memory.conversations.flushing import LEASE
    from firefly_memory.testing import stopped

    conversation = f"abandoned:{uuid4().hex}"
    memory = ConversationMemory(
        store=backend.open(place), summarize_threshold=1, summarizer=lambda turns: f"{len(turns)} turns"
    )
    with stopped() as clock:
        log = memory.store.blocking.log(CONVERSATION_LOG)
        memory.add_turn(conversation, "p", "a")
        assert run_without_loop(log.claim(conversation, "one that died", 0, clock.now(), clock.now() + LEASE))
        memory.add_turn(conversation, "p", "a")
        assert memory.get_summary(conversation) is None
        clock.advance(seconds=LEASE.total_seconds())
        memory.add_turn(conversation, "p", "a")
        assert memory.get_summary(conversation) == "2 turns"
        assert not run_without_loop(log.flush(conversation, *a_flush("one that died", "late", 1, 1)))
    memory.clear(conversation)
    memory.store.close_sync()


@SHARED
def test_eight_processes_that_increment_one_fact_lose_no_increment(backend: Backend, place: Place) -> None:
    scope = f"counted:{uuid4().hex}"
    together([start(backend, place, "increment", scope, 10) for _ in range(PROCESSES)])
    memory = WorkingMemory(store=adapt(backend.open(place)), scope_id=scope)
    assert memory.to_dict() == {"count": PROCESSES * 10, "last": "text"}
    assert memory.store.count(memory.namespace) == 2
    memory.clear()
    memory.store.close_sync()
