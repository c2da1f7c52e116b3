"""How long a turn and a read take, in conversations of several lengths, and how many bytes turns are."""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from benchmarks.comparison.contender import Contender, has_other_work
from benchmarks.comparison.contenders import CONTENDERS
from benchmarks.comparison.places import Places, size
from benchmarks.harness import Work, interleaved

_ROUNDS = {"load": {10: 9, 1_000: 9, 10_000: 5}, "turn": {10: 9, 1_000: 9}}
"""For each number of turns before."""
_A_ROUND = 0.05
"""Seconds of each in a round, and at most so many operations, as quick ones vary more."""
_MOST = 32
_MANY = 16
_WITHOUT = " without store"
_SMALL = 100


@asynccontextmanager
async def opened(places: Places, purpose: str) -> AsyncIterator[dict[str, Contender]]:
    async with AsyncExitStack() as stack:
        contenders = {name: make(places.new(make, purpose)) for name, make in CONTENDERS.items()}
        for contender in contenders.values():
            await contender.open()
            stack.push_async_callback(contender.close)
        yield contenders


async def times(places: Places) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    async with opened(places, "times") as contenders:
        for turns in (10, 1_000, 10_000):
            names = [f"{turns}/{number}" for number in range(_MANY if turns == 10 else 1)]
            for contender in contenders.values():
                for name in names:
                    await contender.fill(name, turns)
            gc.collect()
            gc.freeze()  # what is in memory is not looked at again before each measurement
            for operation, works in (("load", _loads), ("turn", _turns)):
                if turns in _ROUNDS[operation]:
                    spent = await _medians(works(contenders, names), _ROUNDS[operation][turns])
                    rows += [
                        {"contender": name, "operation": operation, "turns": turns, "us": round(each, 1)}
                        for name, each in _of_the_store(spent).items()
                    ]
    return rows


async def _medians(works: Mapping[str, Work], rounds: int) -> dict[str, float]:
    """Microseconds of each, taking turns: quick ones several times in a round."""
    counts = {name: await _count(work) for name, work in works.items()}
    repeated = {name: _repeated(work, counts[name]) for name, work in works.items()}
    spent = await interleaved(repeated, operations=1, rounds=rounds)
    return {name: time / counts[name] for name, time in spent.items()}


async def _count(work: Work) -> int:
    await work()
    started = time.perf_counter()
    await work()
    return max(1, min(_MOST, round(_A_ROUND / (time.perf_counter() - started))))


def _repeated(work: Work, count: int) -> Work:
    async def repeated() -> None:
        for _ in range(count):
            await work()

    return repeated


def _of_the_store(spent: dict[str, float]) -> dict[str, float]:
    """Less what the same turn takes without the store."""
    return {
        name: max(0.0, time - spent.get(name + _WITHOUT, 0.0))
        for name, time in spent.items()
        if not name.endswith(_WITHOUT)
    }


def _loads(contenders: Mapping[str, Contender], names: list[str]) -> dict[str, Work]:
    return {name: _over(names, contender.load) for name, contender in contenders.items()}


def _turns(contenders: Mapping[str, Contender], names: list[str]) -> dict[str, Work]:
    works = {name: _over(names, contender.turn) for name, contender in contenders.items()}
    return works | {
        name + _WITHOUT: _over(names, contender.turn_without_store)
        for name, contender in contenders.items()
        if has_other_work(contender)
    }


def _over(names: list[str], work: Callable[[str], Awaitable[object]]) -> Work:
    """Each time the next conversation."""
    free = deque(names)

    async def over() -> None:
        free.rotate()
        await work(free[0])

    return over


async def sizes(places: Places) -> list[dict[str, Any]]:
    """The bytes of a hundred turns, and of one more turn after a thousand."""
    rows = []
    async with opened(places, "sizes") as contenders:
        for name, contender in contenders.items():
            await contender.turn("first")  # with which the last one makes its tables
            empty = size(contender)
            if empty is None:
                continue
            for _ in range(_SMALL):
                await contender.turn("small")
            small = (size(contender) or 0) - empty
            await contender.fill("large", 1_000)
            before = size(contender) or 0
            for _ in range(10):
                await contender.turn("large")
            more = ((size(contender) or 0) - before) / 10
            rows.append({"contender": name, "bytes_of_100": small, "bytes_of_one_more_after_1000": round(more)})
    return rows
