"""A store with entries and conversations of every kind, and what two stores have in common."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from firefly_memory import (
    ConversationMemory,
    EntryStore,
    MemoryEntry,
    MemoryManager,
)
from firefly_memory.testing.rules.values import VALUES, same
from tests.support.pydantic_ai_messages import EVERYTHING


def filled(store: EntryStore) -> EntryStore:
    store.save_many("n\x00", [MemoryEntry(content=value, key="k", metadata={"v": value}) for value in VALUES[:60]])
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    store.save("expiring", MemoryEntry(content=1, expires_at=in_an_hour, importance=0.9))
    memory = ConversationMemory(store=store, summarize_threshold=20, summarizer=lambda turns: f"{len(turns)} turns")
    memory.new_conversation("empty")
    for number in range(8):
        memory.add_turn("chat", f"prompt {number} \ud800", "answer", EVERYTHING, metadata={"n": number})
    memory.add_turn("plain", "p", "a", [{"role": "user", "content": "p\x00"}, 2**70])
    MemoryManager(store=store, working_scope_id="s").set_fact("k", "v")
    return store


def contents(store: EntryStore) -> dict[str, Any]:
    memory = ConversationMemory(store=store)
    return {
        "entries": {namespace: store.load(namespace) for namespace in store.namespaces()},
        "turns": {name: memory.get_turns(name) for name in sorted(memory.conversation_ids)},
        "windows": {name: memory.get_window(name) for name in sorted(memory.conversation_ids)},
    }


def equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    for namespace in one["entries"]:
        for left, right in zip(one["entries"][namespace], other["entries"][namespace], strict=True):
            assert same(left.content, right.content)
    return one == other
