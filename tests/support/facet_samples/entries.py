"""Samples of entries and facts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from firefly_memory import EntryStore, MemoryEntry, WorkingMemory

_VALUES: list[Any] = ["text \x00\ud800", 2**70, -0.0, 1e300, None, {"~str": "\x00", "": [{"a": 1}]}, [[], {}], True]


def store_hostile(store: EntryStore, text: str) -> None:
    for number in range(3):
        content: Any = {text: [text * 30]} if number else "短い" * 100
        entry = MemoryEntry(entry_id=f"{number}{text}", key=text, content=content)
        store.save(f"n/{text}", entry)
    WorkingMemory(store=store, scope_id=text).set(text, text)


def store_archived(store: EntryStore) -> None:
    for number, value in enumerate(_VALUES):
        entry = MemoryEntry(entry_id=f"e{number}", key=f"k{number % 3}", content=value, metadata={"m": value})
        store.save("notes", entry)
    store.save("notes", MemoryEntry(entry_id="late", content=1, expires_at=datetime(9999, 1, 1, tzinfo=UTC)))
    facts = WorkingMemory(scope_id="s", store=store)
    facts.set("name", "Alice")
    facts.set("count", 1)
