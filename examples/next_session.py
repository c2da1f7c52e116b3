"""The agent's next session, in another process: it remembers, and goes on where it was."""

from __future__ import annotations

import os
import sys

from firefly_memory import MemoryManager, SQLiteStore

print(f"Next session, process {os.getpid()}\n")
with SQLiteStore(sys.argv[1]) as store:
    memory = MemoryManager(store=store, working_scope_id="trip")
    turns = memory.conversation.get_turns("ada")
    print(f"  What was said, {len(turns)} turns; the newest:")
    print(f"    Ada:    {turns[-1].user_prompt}\n    Agent:  {turns[-1].assistant_response}")
    print(f"  What a model would see again: {len(memory.get_message_history('ada'))} messages.\n")

    known = sorted(store.load("long_term:ada"), key=lambda entry: entry.importance, reverse=True)
    print("  What matters most about Ada:")
    for entry in known:
        print(f"    {entry.importance:.1f}  {entry.key}: {entry.content}")

    task = memory.get_fact("task")
    print(f"\n  The task in hand: book {task['book']} from {task['from']} to {task['to']}.")
    print(f"  The door code, which was good for a second: {memory.get_fact('door code')}")

    memory.set_fact("task", {**task, "booked": True}, importance=0.8)  # replaces the fact; it keeps its place
    memory.set_fact("next", "send Ada the ticket", importance=0.7)
    memory.add_turn("ada", "Is it booked?", "Yes: NJ 467, by the window.")
print("\n  The train is booked, and this process ends too.\n")
