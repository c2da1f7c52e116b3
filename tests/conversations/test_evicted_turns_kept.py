"""``InMemoryStore(max_turns_kept=…)``: the number of kept turns, and the effects of dropped ones."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import (
    ConfigurationError,
    ConversationMemory,
    ConversationTurn,
    InMemoryStore,
    InvalidEntryError,
    SQLiteStore,
    StaleConversationError,
    TurnsDroppedError,
    connect,
)
from firefly_memory.archive import export_jsonl, import_jsonl
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.copying import copy_store

COUNT = 20


def summarize(turns: list[ConversationTurn]) -> str:
    return f"up to {turns[-1].turn_id}"


def bounded(max_turns_kept: int | None, turns: int = COUNT) -> ConversationMemory:
    memory = ConversationMemory(
        store=InMemoryStore(max_turns_kept=max_turns_kept), summarizer=summarize, summarize_threshold=50
    )
    for number in range(turns):
        memory.add_turn("c", f"prompt {number}", "x" * 40, idempotency_key=f"key {number}")
    return memory


def numbers(turns: Sequence[ConversationTurn]) -> list[int]:
    return [turn.turn_id for turn in turns]


@pytest.mark.parametrize("max_turns_kept", [0, 3, COUNT, None])
def test_the_newest_evicted_turns_are_kept_and_the_window_is_the_same(max_turns_kept: int | None) -> None:
    everything, memory = bounded(None), bounded(max_turns_kept)
    (info,) = memory.list_conversations()
    kept = info.summarized_turns if max_turns_kept is None else min(max_turns_kept, info.summarized_turns)
    assert info.dropped_turns == info.summarized_turns - kept
    assert info.summarized_turns == everything.list_conversations()[0].summarized_turns > 3
    assert numbers(memory.get_turns("c")) == list(range(info.dropped_turns, COUNT))
    assert memory.get_turns("c")[0].user_prompt == f"prompt {info.dropped_turns}"
    assert numbers(memory.get_turns("c", limit=1, after=info.dropped_turns)) == [info.dropped_turns + 1]
    for budget in (None, 60, 1):
        ours, theirs = memory.get_window("c", budget), everything.get_window("c", budget)
        assert ours.left_out == theirs.left_out
        assert (ours.turns, ours.summary, ours.total_turns) == (theirs.turns, theirs.summary, COUNT)
    assert memory.get_total_tokens("c") == everything.get_total_tokens("c")
    assert memory.get_summary("c") == everything.get_summary("c")


def test_without_a_summarizer_nothing_is_dropped() -> None:
    memory = ConversationMemory(store=InMemoryStore(max_turns_kept=0))
    for number in range(COUNT):
        memory.add_turn("c", str(number), "")
    assert numbers(memory.get_turns("c")) == list(range(COUNT))


def test_dropped_turns_use_no_memory() -> None:
    memory = bounded(2, turns=200)
    log: Any = memory.store.blocking.log(CONVERSATION_LOG)
    kept = log._conversations["c"]
    assert len(kept.turns) == len(kept._tokens_before) == len(kept._by_key) < 10


def test_a_retry_with_the_number_of_a_dropped_turn_is_an_error() -> None:
    memory = bounded(2)
    dropped = memory.list_conversations()[0].dropped_turns
    with pytest.raises(TurnsDroppedError, match=f"the first {dropped} turns of conversation 'c' were dropped"):
        memory.add_turn("c", "prompt 1", "x" * 40, turn_id=1)
    with pytest.raises(StaleConversationError):
        memory.add_turn("c", "prompt 1", "x" * 40, expected_turns=1)
    again = memory.add_turn("c", f"prompt {dropped}", "x" * 40, turn_id=dropped)
    assert again.turn_id == dropped, "one that is kept is recognised"
    assert len(memory.get_turns("c")) == COUNT - dropped


def test_a_fork_has_the_kept_turns_or_is_refused() -> None:
    memory = bounded(2)
    (info,) = memory.list_conversations()
    for name, turns in (("whole", None), ("most", info.summarized_turns)):
        fork = memory.fork_conversation("c", name, turns=turns)
        count = COUNT if turns is None else turns
        assert numbers(memory.get_turns(fork)) == list(range(info.dropped_turns, count))
        assert memory.get_summary(fork) == memory.get_summary("c")
        assert memory.add_turn(fork, "more", "").turn_id == count
        tokens = sum(turn.token_estimate for turn in bounded(None).get_turns("c")[:count])
        assert memory.get_total_tokens(fork) == tokens + memory.get_turns(fork)[-1].token_estimate
    for turns in (1, info.summarized_turns - 1):
        with pytest.raises(TurnsDroppedError, match="cannot be restored"):
            memory.fork_conversation("c", "refused", turns=turns)
    assert "refused" not in memory.conversation_ids
    assert memory.get_turns(memory.fork_conversation("c", turns=0)) == []


def test_an_export_names_missing_turns_and_can_be_imported() -> None:
    memory = bounded(2)
    (info,) = memory.list_conversations()
    data = json.loads(json.dumps(memory.export_conversation("c", raw_messages=True)))
    assert data["dropped_turns"] == info.dropped_turns
    assert [turn["turn_id"] for turn in data["turns"]] == list(range(info.dropped_turns, COUNT))
    elsewhere = ConversationMemory()
    for _ in range(2):
        elsewhere.import_conversation(data)
    assert numbers(elsewhere.get_turns("c")) == list(range(COUNT - info.dropped_turns))
    assert elsewhere.get_message_history("c") == memory.get_message_history("c")
    assert elsewhere.list_conversations()[0].summarized_turns == 2
    for damage in ({"dropped_turns": -1}, {"dropped_turns": COUNT}, {"dropped_turns": "2"}):
        with pytest.raises(InvalidEntryError):
            elsewhere.import_conversation({**data, **damage}, "damaged")


def test_an_import_into_a_bounded_store_keeps_the_bound() -> None:
    memory = ConversationMemory(store=InMemoryStore(max_turns_kept=1))
    memory.import_conversation(bounded(None).export_conversation("c"))
    (info,) = memory.list_conversations()
    assert numbers(memory.get_turns("c")) == list(range(info.summarized_turns - 1, COUNT))


@pytest.mark.parametrize("max_turns_kept", [0, 2])
def test_archives_and_copies_have_the_kept_turns(max_turns_kept: int, tmp_path: Path) -> None:
    memory = bounded(max_turns_kept)
    (info,) = memory.list_conversations()
    file = io.StringIO()
    export_jsonl(memory.store, file)
    file.seek(0)
    with SQLiteStore(tmp_path / "imported.db") as imported, SQLiteStore(tmp_path / "copied.db") as copied:
        import_jsonl(imported, file)
        for _ in range(2):
            assert copy_store(memory.store, copied).difference is None
        for store in (imported, copied):
            copy = ConversationMemory(store=store)
            assert numbers(copy.get_turns("c")) == list(range(COUNT - info.dropped_turns))
            assert copy.get_summary("c") == memory.get_summary("c")
            assert copy.get_message_history("c") == memory.get_message_history("c")


@pytest.mark.parametrize("value", [-1, 1.5, "3", True])
def test_max_turns_kept_is_a_whole_number(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_turns_kept must be a whole number from 0 up"):
        InMemoryStore(max_turns_kept=value)


def test_the_bound_is_shown_and_can_be_given_with_a_url() -> None:
    assert repr(InMemoryStore()) == "InMemoryStore()"
    assert repr(connect("memory:", max_turns_kept=5)) == "InMemoryStore(max_turns_kept=5)"
