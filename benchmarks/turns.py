"""An agent's turn: read the newest messages within a budget, then append; in conversations of several lengths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pymongo import AsyncMongoClient, MongoClient

from benchmarks.bare_turns import (
    BareAiosqliteTurns,
    BareAsyncpgTurns,
    BareMongoTurns,
    BarePsycopgTurns,
    BareSQLiteTurns,
    BareTurns,
)
from benchmarks.conversations import BUDGET, ESTIMATOR, TOKENS, Fill, fills
from benchmarks.harness import Result, Work, measure
from benchmarks.one_turn import ANSWER, MESSAGES, PROMPT
from benchmarks.stores import Places
from firefly_memory import ConversationMemory, EntryStore

_OPERATIONS = 64  # of a round
_CALLERS = 32
_CONCURRENT_OPERATIONS = 256
_CONCURRENT_SIZE = 1_000
_MOST_SHORT_TURNS = 20_000


class OurTurns(ABC):
    """Ours, in one mode."""

    def __init__(self, store: EntryStore) -> None:
        self.memory = ConversationMemory(store=store, estimator=ESTIMATOR)

    @abstractmethod
    async def history(self, conversation_id: str) -> list[Any]: ...

    @abstractmethod
    async def add(self, conversation_id: str) -> None: ...


class Blocking(OurTurns):
    async def history(self, conversation_id: str) -> list[Any]:
        return self.memory.get_message_history(conversation_id, BUDGET)

    async def add(self, conversation_id: str) -> None:
        self.memory.add_turn(conversation_id, PROMPT, ANSWER, MESSAGES)


class Suspending(OurTurns):
    async def history(self, conversation_id: str) -> list[Any]:
        return await self.memory.async_get_message_history(conversation_id, BUDGET)

    async def add(self, conversation_id: str) -> None:
        await self.memory.async_add_turn(conversation_id, PROMPT, ANSWER, MESSAGES)


Side = OurTurns | BareTurns


@dataclass(frozen=True)
class Pair:
    name: str
    ours: OurTurns
    bare: BareTurns
    add_aim: float = 1.2
    add_limit: float = 1.5

    @property
    def backend(self) -> str:
        return self.name.split()[0]

    @property
    def concurrent(self) -> bool:
        return isinstance(self.ours, Suspending)


@asynccontextmanager
async def pairs(places: Places) -> AsyncIterator[list[Pair]]:
    async with places.stores() as stores:
        found: list[Pair] = []
        if store := stores.get("sqlite"):
            found.append(Pair("sqlite sync", Blocking(store), BareSQLiteTurns(places.bare_path), 2.0, 4.0))
            suspending = await BareAiosqliteTurns.open(places.bare_path)
            found.append(Pair("sqlite async", Suspending(store), suspending, 1.3, 2.0))
        if store := stores.get("postgresql"):
            url = places.postgresql_url
            found.append(Pair("postgresql async", Suspending(store), await BareAsyncpgTurns.open(url)))
            found.append(Pair("postgresql sync", Blocking(store), BarePsycopgTurns(url)))
        if store := stores.get("mongodb"):
            url = places.mongodb_url
            client: AsyncMongoClient[Any] = AsyncMongoClient(url, maxPoolSize=10)
            found.append(Pair("mongodb async", Suspending(store), BareMongoTurns(client)))
            blocking: MongoClient[Any] = MongoClient(url, maxPoolSize=10)
            found.append(Pair("mongodb sync", Blocking(store), BareMongoTurns(blocking)))
        try:
            yield found
        finally:
            for pair in found:
                await pair.bare.close()


async def turns(places: Places, sizes: Sequence[int], rounds: int) -> AsyncIterator[Result]:
    """Alone, then 32 tasks on a conversation each, then 32 on one."""
    fill = fills(places)
    async with pairs(places) as compared:
        for size in sizes:
            # An append makes a conversation longer: so short ones are many, and each has its turn.
            count = max(1, min((rounds + 1) * _OPERATIONS, _MOST_SHORT_TURNS // size))
            names = {pair: filled(pair, fill[pair.backend], count, size) for pair in compared}
            places.settle()
            for pair in compared:
                for operation in _WORKS:
                    yield await _alone(pair, operation, names[pair], size, rounds)
        concurrent = [pair for pair in compared if pair.concurrent]
        names = {
            pair: filled(pair, fill[pair.backend], 1 + _CALLERS, _CONCURRENT_SIZE, "shared ") for pair in concurrent
        }
        places.settle()
        for pair in concurrent:
            one, *many = names[pair]
            for operation in _WORKS:
                yield await _together(pair, operation, f"{operation}, {_CALLERS} conversations", many, rounds)
                yield await _together(pair, operation, f"{operation}, 1 conversation", [one] * _CALLERS, rounds)


def filled(pair: Pair, sides: list[Fill], count: int, size: int, kind: str = "") -> list[str]:
    prefix = f"{pair.name} {kind}{size}/"
    for fill in sides:
        fill(prefix, count, size)
    return [f"{prefix}{number}" for number in range(count)]


async def _alone(pair: Pair, operation: str, names: list[str], size: int, rounds: int) -> Result:
    works = [_WORKS[operation](side, names, size) for side in (pair.ours, pair.bare)]
    times = await measure(*works, operations=_OPERATIONS, rounds=rounds)
    aim, limit = (1.3, 1.5) if operation == "turn" else (pair.add_aim, pair.add_limit)
    return Result(pair.name, operation, 1, size, *times, aim, limit)


async def _together(pair: Pair, operation: str, shown: str, names: list[str], rounds: int) -> Result:
    works = [_WORKS[operation](side, names, _CONCURRENT_SIZE) for side in (pair.ours, pair.bare)]
    times = await measure(*works, operations=_CONCURRENT_OPERATIONS, callers=_CALLERS, rounds=rounds)
    return Result(pair.name, shown, _CALLERS, _CONCURRENT_SIZE, *times, 1.0, 1.3)


def _turn(side: Side, names: list[str], size: int) -> Work:
    free = deque(names)
    least = 4 * min(size, BUDGET // TOKENS)

    async def turn() -> None:
        conversation_id = free.popleft()
        assert len(await side.history(conversation_id)) >= least
        await side.add(conversation_id)
        free.append(conversation_id)

    return turn


def _add_turn(side: Side, names: list[str], _: int) -> Work:
    free = deque(names)

    async def add_turn() -> None:
        conversation_id = free.popleft()
        await side.add(conversation_id)
        free.append(conversation_id)

    return add_turn


_WORKS: dict[str, Callable[[Side, list[str], int], Work]] = {
    "turn": _turn,
    "add_turn": _add_turn,
}
