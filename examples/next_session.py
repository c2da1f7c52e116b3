"""The agent's next session, in another process: it remembers, and goes on where it was."""

from __future__ import annotations

import os
import sys

from firefly_memory import MemoryEntry, SQLiteStore

print(f"Next session, process {os.getpid()}\n")
with SQLiteStore(sys.argv[1]) as store:
    known = sorted(store.load("long_term:ada"), key=lambda entry: entry.importance, reverse=True)
    print("  What matters most about Ada:")
    for entry in known:
        print(f"    {entry.importance:.1f}  {entry.key}: {entry.content}")

    task = store.load_by_key("working:trip", "task")
    assert task is not None
    print(f"\n  The task in hand: book {task.content['book']} from {task.content['from']} to {task.content['to']}.")
    print(f"  The door code, which was good for a second: {store.load_by_key('working:trip', 'door code')}")

    # Saving an entry again replaces it; it keeps its place.
    task.content["booked"] = True
    store.save("working:trip", task)
    store.save("working:trip", MemoryEntry(key="next", content="send Ada the ticket", importance=0.7))
print("\n  The train is booked, and this process ends too.\n")
