"""What workers do with memories: imported by ``tests.support.store_worker``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

from firefly_memory import (
    ABSENT,
    ConversationMemory,
    ConversationTurn,
    DatabaseConnectionError,
    EntryStore,
    OutcomeUnknownError,
    StoreTimeoutError,
    WorkingMemory,
)
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory


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


def work_in_bad_weather(store: EntryStore, scope: str, name: str, count: str, mode: str) -> None:
    """Increments, takes locks and appends turns over a connection that breaks; prints what each call came to."""
    facts = Memory(WorkingMemory(store=store, scope_id=scope), Mode(mode))
    talks = Memory(ConversationMemory(store=store), Mode(mode))
    results: dict[str, list[object]] = {"increments": [], "locks": [], "turns": [], "keyed": []}

    async def note(kind: str, call: Awaitable[Any]) -> None:
        try:
            result = await call
            results[kind].append(result.turn_id if isinstance(result, ConversationTurn) else result)
        except OutcomeUnknownError:
            results[kind].append("unknown")
        except (DatabaseConnectionError, StoreTimeoutError):
            results[kind].append("not done")

    async def work() -> None:
        for number in range(int(count)):
            prompt = f"{name} {number}"
            await note("increments", facts.increment("count"))
            await note("locks", facts.compare_and_set(f"lock {number}", ABSENT, prompt))
            await note("turns", talks.add_turn(scope, prompt, ""))
            await note("keyed", talks.add_turn(f"{scope} keyed", prompt, "", idempotency_key=prompt))
        if mode == Mode.SUSPENDING:
            await store.close()

    run_without_loop(work()) if mode == Mode.BLOCKING else asyncio.run(work())
    print(json.dumps(results))


def increment(store: EntryStore, scope: str, count: str) -> None:
    memory = WorkingMemory(store=store, scope_id=scope)
    for _ in range(int(count)):
        memory.increment("count")
        memory.set("last", "text")
