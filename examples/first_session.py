"""An agent's first session with Ada: it talks with her, remembers what matters, and its process ends."""

from __future__ import annotations

import os
import sys

from firefly_memory import MemoryEntry, MemoryManager, MemoryScope, SQLiteStore

# What the agent learns about Ada for good …
about_ada = {"diet": (["vegetarian", "no nuts"], 1.0), "name": ("Ada Lovelace", 0.9), "seat": ("by the window", 0.3)}

# … and what is said. The answers come from a list, so that this runs without a model.
said = [
    ("I need a night train from Zürich to Vienna.", "NJ 467 leaves at 21:40, for 89.90 EUR. Shall I book it?"),
    ("By the window, please. The door code for today is 4711.", "Noted. I will book a window seat."),
]

print(f"First session, process {os.getpid()}\n")
with SQLiteStore(sys.argv[1]) as store:
    memory = MemoryManager(store=store, working_scope_id="trip")
    for prompt, answer in said:
        memory.add_turn("ada", prompt, answer)
        print(f"  Ada:    {prompt}\n  Agent:  {answer}")

    memory.set_fact("task", {"book": "a night train", "from": "Zürich", "to": "Vienna"}, importance=0.8)
    memory.set_fact("offer", {"train": "NJ 467", "price": 89.9}, ttl=3600)
    memory.set_fact("door code", "4711", ttl=1)
    for key, (value, importance) in about_ada.items():
        entry = MemoryEntry(scope=MemoryScope.LONG_TERM, key=key, content=value, importance=importance)
        store.save("long_term:ada", entry)
print("\n  The process ends here.\n")
