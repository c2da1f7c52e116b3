"""A store with a little of everything that stores keep."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from firefly_memory import ConversationMemory, EntryStore, MemoryEntry, WorkingMemory
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG, HistoryEntry, HistoryRecord
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.facets import log_if_there
from firefly_memory.testing import stopped
from firefly_memory.testing.checks import Words

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

VALUES: list[Any] = ["text \x00\ud800", 2**70, -0.0, 1e300, None, {"~str": "\x00", "": [{"a": 1}]}, [[], {}], True]

MESSAGE = {"parts": [{"content": "hello", "part_kind": "user-prompt"}], "kind": "request"}


def memory_of(store: EntryStore) -> ConversationMemory:
    """One that needs no model, and summarizes soon."""
    return ConversationMemory(
        store=store,
        max_tokens=12,
        summarize_threshold=6,
        estimator=Words(),
        summarizer=lambda turns: f"{len(turns)} turns",
    )


def fill(store: EntryStore) -> None:
    """The same in every process, so that a seed has the same examples."""
    with stopped(MOMENT):
        _fill(store)


def _fill(store: EntryStore) -> None:
    for number, value in enumerate(VALUES):
        entry = MemoryEntry(entry_id=f"e{number}", key=f"k{number % 3}", content=value, metadata={"m": value})
        store.save("notes", entry)
    store.save("notes", MemoryEntry(entry_id="late", content=1, expires_at=datetime(9999, 1, 1, tzinfo=UTC)))
    facts = WorkingMemory(scope_id="s", store=store)
    facts.set("name", "Alice")
    facts.set("count", 1)
    memory = memory_of(store)
    memory.new_conversation("empty")
    for number in range(4):
        memory.add_turn("chat", f"prompt {number} a b c", "answer", [{"n": number}], metadata={"n": number})
    memory.add_turn("plain", "p", "a", idempotency_key="once")
    history = log_if_there(store.blocking, AGENT_HISTORY_LOG)
    if history is not None:
        entries = [
            HistoryEntry(f"m{number}", f"m{number - 1}" if number else None, "message", json.dumps(MESSAGE))
            for number in range(3)
        ]
        record = HistoryRecord("d", "r1", "m2", "scope", None, None, ["m2"], "{}", None, MOMENT, 1)
        assert run_without_loop(history.write(record, entries, None))
