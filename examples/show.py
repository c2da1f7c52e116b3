"""Print what is in a SQLite file of memories, as a table."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime

from firefly_memory import MemoryEntry, SQLiteStore

HEADINGS = ("namespace", "key", "scope", "importance", "expires", "content")


def row(namespace: str, entry: MemoryEntry) -> tuple[str, ...]:
    left = "never"
    if entry.expires_at is not None:
        left = f"in {(entry.expires_at - datetime.now(UTC)).total_seconds() / 60:.0f} min"
    content = json.dumps(entry.content, ensure_ascii=False)
    return namespace, entry.key or "", entry.scope, f"{entry.importance:.1f}", left, content


path = sys.argv[1]
with SQLiteStore(path) as store:
    expired = store.cleanup_expired_sync()
    rows = [row(namespace, entry) for namespace in store.namespaces() for entry in store.load(namespace)]

widths = [max(map(len, column)) for column in zip(HEADINGS, *rows, strict=True)]
print(f"{path}: {len(rows)} live entries, {expired} expired and now deleted\n")
for cells in [HEADINGS, tuple("-" * width for width in widths), *rows]:
    print("  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
