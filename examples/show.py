"""Print what is in a SQLite file of memories, as tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from firefly_memory import ConversationMemory, MemoryEntry, SQLiteStore


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for cells in [headings, ["-" * width for width in widths], *rows]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


def as_row(namespace: str, entry: MemoryEntry) -> Sequence[str]:
    left = "never"
    if entry.expires_at is not None:
        left = f"in {(entry.expires_at - datetime.now(UTC)).total_seconds() / 60:.0f} min"
    content = json.dumps(entry.content, ensure_ascii=False)
    return namespace, entry.key or "", entry.scope, f"{entry.importance:.1f}", left, content


path = sys.argv[1]
with SQLiteStore(path) as store:
    expired = store.cleanup_expired_sync()
    entries = [as_row(namespace, entry) for namespace in store.namespaces() for entry in store.load(namespace)]
    memory = ConversationMemory(store=store)
    turns = [
        (name, str(turn.turn_id), str(turn.token_estimate), turn.user_prompt, turn.assistant_response)
        for name in memory.conversation_ids
        for turn in memory.get_turns(name)
    ]

print(f"{path}: {len(entries)} live entries, {expired} expired and now deleted; {len(turns)} turns\n")
table(("namespace", "key", "scope", "importance", "expires", "content"), entries)
print()
table(("conversation", "turn", "tokens", "user", "assistant"), turns)
