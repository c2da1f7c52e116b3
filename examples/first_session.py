"""An agent's first session with Ada: it saves what it should remember, and its process ends."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta

from firefly_memory import MemoryEntry, MemoryScope, SQLiteStore

now = datetime.now(UTC)

# What the agent learned about Ada, for good …
about_ada = [
    MemoryEntry(scope=MemoryScope.LONG_TERM, key="name", content="Ada Lovelace", importance=0.9),
    MemoryEntry(scope=MemoryScope.LONG_TERM, key="diet", content=["vegetarian", "no nuts"], importance=1.0),
    MemoryEntry(scope=MemoryScope.LONG_TERM, key="seat", content="by the window", importance=0.3),
]

# … and what it is in the middle of, some of which will soon be of no use to anyone.
trip = [
    MemoryEntry(key="task", content={"book": "a night train", "from": "Zürich", "to": "Vienna"}, importance=0.8),
    MemoryEntry(key="offer", content={"train": "NJ 467", "price": 89.9}, expires_at=now + timedelta(hours=1)),
    MemoryEntry(key="door code", content="4711", expires_at=now + timedelta(seconds=1)),
]

print(f"First session, process {os.getpid()}\n")
with SQLiteStore(sys.argv[1]) as store:
    for namespace, entries in {"long_term:ada": about_ada, "working:trip": trip}.items():
        store.save_many(namespace, entries)
        for entry in entries:
            print(f"  saved  {namespace}  {entry.key}: {entry.content}")
print("\n  The process ends here.\n")
