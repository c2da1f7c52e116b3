"""What workers do with memories: imported by ``tests.worker``."""

from __future__ import annotations

import asyncio
import json

from firefly_memory import ConversationMemory, ConversationTurn, EntryStore, WorkingMemory


def append_turns(store: EntryStore, conversation: str, name: str, count: str) -> None:
    memory = ConversationMemory(store=store)
    for number in range(int(count)):
        memory.add_turn(conversation, f"{name} {number}", "answer")


def append_turns_from_tasks(store: EntryStore, conversation: str, name: str, count: str) -> None:
    async def main() -> None:
        memory = ConversationMemory(store=store)
        await asyncio.gather(
            *[memory.async_add_turn(conversation, f"{name} {number}", "answer") for number in range(int(count))]
        )
        await store.close()

    asyncio.run(main())


def append_until_killed(store: EntryStore, conversation: str) -> None:
    memory = ConversationMemory(store=store)
    while True:
        print(memory.add_turn(conversation, "prompt", "answer", ["message"]).turn_id, flush=True)


def append_and_summarize(store: EntryStore, conversation: str, name: str, count: str) -> None:
    """Prints the numbers of the turns that each call of this process's summarizer was given."""
    calls: list[list[int]] = []

    def summarize(turns: list[ConversationTurn]) -> str:
        calls.append([turn.turn_id for turn in turns])
        return " ".join(turn.assistant_response for turn in turns)

    memory = ConversationMemory(store=store, summarize_threshold=100, summarizer=summarize)
    for number in range(int(count)):
        memory.add_turn(conversation, "prompt", f"{name}-{number}")
    print(json.dumps(calls))


def increment(store: EntryStore, scope: str, count: str) -> None:
    memory = WorkingMemory(store=store, scope_id=scope)
    for _ in range(int(count)):
        memory.increment("count")
        memory.set("last", "text")
