"""What workers do with memories: ``tests.support.store_worker`` finds it by the name of this module."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from datetime import timedelta
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
    clock,
)
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.identifiers import new_entry_id
from firefly_memory.testing import Mode
from firefly_memory.testing.checks import Memory
from tests.support.flush_chains import flush_of


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


def append_and_flush(store: EntryStore, conversation: str, name: str, count: str) -> None:
    """Prints the ids of the flushes that this process has made, each as soon as it knows. ``count`` 0 goes on for
    ever."""
    memory = ConversationMemory(store=store)
    number = 0
    while not int(count) or number < int(count):
        memory.add_turn(conversation, f"{name} {number}", "answer", summarize=False)
        flush_id = _flushed(store, conversation, drops=number % 5 == 4)
        if flush_id is not None:
            print(flush_id, flush=True)
        number += 1


def _flushed(store: EntryStore, conversation: str, *, drops: bool) -> str | None:
    """Take all turns but the newest two out of the window, if nobody else is about to; the id of the flush."""
    log = store.blocking.log(CONVERSATION_LOG)
    head = run_without_loop(log.head(conversation))
    if head is None or head.live_turns < 4:
        return None
    claim, now = new_entry_id(), clock.now()
    if not run_without_loop(log.claim(conversation, claim, head.evicted_turns, now, now + timedelta(seconds=2))):
        return None
    turns = head.turns - 2
    gone = run_without_loop(log.turns(conversation, head.evicted_turns - 1, turns - head.evicted_turns))
    tokens = head.evicted_tokens + sum(turn.tokens for turn in gone)
    flush, after = flush_of(head, turns, tokens, f"{turns} turns", drops=drops)
    return claim if run_without_loop(log.flush(conversation, flush._replace(flush_id=claim), after)) else None


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
