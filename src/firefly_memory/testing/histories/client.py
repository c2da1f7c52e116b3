"""A client of a store that does one random operation after the other, and records each."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from firefly_memory.conversations.memory import ConversationMemory
from firefly_memory.conversations.types import ConversationTurn, Window
from firefly_memory.protocols import ABSENT
from firefly_memory.stores.base import EntryStore
from firefly_memory.testing.checks import Memory, Mode, Words
from firefly_memory.testing.histories.operation import Kind, Operation
from firefly_memory.testing.histories.recorder import Recorder
from firefly_memory.working import WorkingMemory

CONVERSATIONS = 2
_TRIES = 4
_ROUND = 12  # a fact is left alone after so many steps: the search for an order is as long as its history
_PAUSE = 0.02  # so that a server that is away does not use up all operations

STEPS = {
    "append": 20,
    "append_with_key": 12,
    "append_if_nothing_is_new": 8,
    "read_turns": 10,
    "read_page": 6,
    "read_window": 10,
    "get": 8,
    "set": 8,
    "delete": 2,
    "compare_and_set": 14,
    "increment": 10,
}
"""What a client does, and how often."""


def conversation(run: str, number: int) -> str:
    """The id of a conversation of the run."""
    return f"history:{run}:{number}"


class Client:
    """Works on the conversations and facts of ``run``; ``seed`` decides what it does."""

    def __init__(self, name: str, store: EntryStore, mode: Mode, run: str, seed: str, recorder: Recorder) -> None:
        self._name = name
        self._mode = mode
        self._run = run
        self._random = random.Random(seed)
        self._recorder = recorder
        self._turns = Memory(ConversationMemory(store=store, estimator=Words()), mode)
        self._facts = Memory(WorkingMemory(store=store, scope_id=f"history:{run}"), mode)
        self._steps = 0
        self._known_turns: dict[str, int] = {}
        self._known_values: dict[str, Any] = {}

    def close(self) -> None:
        self._recorder.close()

    async def work(self, steps: int) -> None:
        """Do ``steps`` of random kinds."""
        for _ in range(steps):
            (step,) = self._random.choices(list(STEPS), list(STEPS.values()))
            self._steps += 1
            await getattr(self, step)()

    async def append(self) -> None:
        await self._append(self._a_conversation(), self._new_value())

    async def append_with_key(self) -> None:
        """Append, and try again until it is acknowledged; now and then once more."""
        on, text = self._a_conversation(), self._new_value()
        for _ in range(_TRIES):
            if (await self._append(on, text, idempotency_key=text)).is_done and self._random.random() < 0.7:
                return

    async def append_if_nothing_is_new(self) -> None:
        on = self._a_conversation()
        await self._read_window(on)
        await self._append(on, self._new_value(), expected_turns=self._known_turns.get(on, 0))

    async def read_turns(self) -> None:
        await self.read_all_turns(self._a_conversation())

    async def read_all_turns(self, on: str) -> Operation:
        return await self._read(on, lambda: self._turns.get_turns(on), None, first=0)

    async def read_page(self) -> None:
        on, limit = self._a_conversation(), self._random.randint(1, 5)
        if known := self._known_turns.get(on):
            after = self._random.randrange(known)
            await self._read(on, lambda: self._turns.get_turns(on, limit, after), limit, first=after + 1)

    async def read_window(self) -> None:
        await self._read_window(self._a_conversation())

    async def get(self) -> None:
        await self.get_fact(self._a_fact())

    async def get_fact(self, key: str) -> Operation:
        done = await self._record(Kind.GET, key, lambda: self._facts.get(key))
        if done.is_done:
            self._known_values[key] = done.result
        return done

    async def set(self) -> None:
        key, value = self._a_fact(), self._new_value()
        await self._record(Kind.SET, key, lambda: self._facts.set(key, value), value=value)
        self._known_values[key] = value

    async def delete(self) -> None:
        key = self._a_fact()
        await self._record(Kind.DELETE, key, lambda: self._facts.delete(key))

    async def compare_and_set(self) -> None:
        key, value = self._a_fact(), self._new_value()
        if self._random.random() < 0.7:
            await self.get_fact(key)
        known = self._known_values.get(key)
        expected = ABSENT if known is None else known

        async def swap() -> bool:
            return bool(await self._facts.compare_and_set(key, expected, value))

        if (await self._record(Kind.COMPARE_AND_SET, key, swap, expected=known, value=value)).result:
            self._known_values[key] = value

    async def increment(self) -> None:
        key = f"counter {self._steps // _ROUND}"
        await self._record(Kind.INCREMENT, key, lambda: self._facts.increment(key, 1), by=1)

    async def clear(self) -> None:
        """Delete all that the clients of the run have stored."""
        await self._facts.clear()
        for number in range(CONVERSATIONS):
            await self._turns.clear(conversation(self._run, number))

    async def _append(self, on: str, text: str, **options: Any) -> Operation:
        async def append() -> int:
            turn: ConversationTurn = await self._turns.add_turn(on, text, "", **options)
            return turn.turn_id

        return await self._record(Kind.APPEND, on, append, text=text, **options)

    async def _read(
        self, on: str, call: Callable[[], Awaitable[list[ConversationTurn]]], limit: int | None, *, first: int
    ) -> Operation:
        async def read() -> dict[str, Any]:
            turns = _texts(await call())
            is_whole = limit is None or len(turns) < limit
            return {"turns": turns, "total": first + len(turns) if is_whole else None}

        return self._noted(await self._record(Kind.READ, on, read, first=first))

    async def _read_window(self, on: str) -> Operation:
        budget = self._random.choice([40, 200, 128_000])

        async def read() -> dict[str, Any]:
            window: Window = await self._turns.get_window(on, budget)
            return {"turns": _texts(window.replayed), "total": window.total_turns}

        return self._noted(await self._record(Kind.READ, on, read, budget=budget))

    def _noted(self, read: Operation) -> Operation:
        if read.is_done and read.result["total"] is not None:
            self._known_turns[read.target] = read.result["total"]
        return read

    async def _record(self, kind: Kind, on: str, call: Callable[[], Awaitable[Any]], **arguments: Any) -> Operation:
        done = await self._recorder.record(kind, on, call, arguments)
        if not done.is_done and self._mode is Mode.SUSPENDING:
            await asyncio.sleep(_PAUSE)
        elif not done.is_done:
            time.sleep(_PAUSE)  # noqa: ASYNC251 - without an event loop
        return done

    def _a_conversation(self) -> str:
        return conversation(self._run, self._random.randrange(CONVERSATIONS))

    def _a_fact(self) -> str:
        return f"fact {self._steps // _ROUND}"

    def _new_value(self) -> str:
        return f"{self._name} {self._steps}"


def _texts(turns: Any) -> list[tuple[int, str]]:
    return [(turn.turn_id, turn.user_prompt) for turn in turns]
