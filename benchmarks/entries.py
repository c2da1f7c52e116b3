"""Saving and loading entries, from namespaces of several sizes."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.bare import (
    CONTENT,
    Bare,
    BareAiosqlite,
    BareAsyncpg,
    BareBlockingMongoDB,
    BareMongoDB,
    BarePsycopg,
    BareSQLite,
)
from benchmarks.harness import Result, measure
from benchmarks.stores import Places
from firefly_memory import MemoryEntry, StoreView


@dataclass(frozen=True)
class Pair:
    """A store of ours in one mode, and the bare driver of that mode."""

    name: str
    view: StoreView
    bare: Bare
    single_aim: float
    single_limit: float
    concurrent: bool = True


@asynccontextmanager
async def _pairs(places: Places) -> AsyncIterator[list[Pair]]:
    async with places.stores() as stores:
        found: list[Pair] = []
        if store := stores.get("sqlite"):
            blocking = BareSQLite(places.bare_path)
            found.append(Pair("sqlite sync", store.blocking, blocking, 2.0, 4.0, concurrent=False))
            suspending = await BareAiosqlite.open(places.bare_path)
            found.append(Pair("sqlite async", store.suspending, suspending, 1.3, 2.0))
        if store := stores.get("postgresql"):
            url = places.postgresql_url
            found.append(Pair("postgresql async", store.suspending, await BareAsyncpg.open(url), 1.2, 1.5))
            found.append(Pair("postgresql sync", store.blocking, BarePsycopg(url), 1.2, 1.5, concurrent=False))
        if store := stores.get("mongodb"):
            url = places.mongodb_url
            found.append(Pair("mongodb async", store.suspending, BareMongoDB(url), 1.2, 1.5))
            found.append(Pair("mongodb sync", store.blocking, BareBlockingMongoDB(url), 1.2, 1.5, concurrent=False))
        try:
            yield found
        finally:
            for pair in found:
                await pair.bare.close()


async def entries(places: Places, sizes: Sequence[int], rounds: int) -> AsyncIterator[Result]:
    async with _pairs(places) as compared:
        for size in sizes:
            for pair in compared:
                await _fill(pair, size)
            places.settle()
            for pair in compared:
                for callers in (1, 32) if pair.concurrent else (1,):
                    yield await _save(pair, size, callers, rounds)
                    yield await _load_by_key(pair, size, callers, rounds)
        for pair in compared:
            yield await _load(pair, rounds)
            yield await _save_many(pair, rounds)
            yield await _cleanup(pair, max(3, rounds // 3))


def _namespace(pair: Pair, size: int) -> str:
    return f"{pair.name} {size}"


async def _fill(pair: Pair, size: int) -> None:
    namespace = _namespace(pair, size)
    for start in range(0, size, 5_000):
        batch = range(start, min(size, start + 5_000))
        await pair.view.save_many(namespace, [MemoryEntry(content=CONTENT, key=f"key {n}") for n in batch])
        await pair.bare.save_many(namespace, len(batch))


async def _save(pair: Pair, size: int, callers: int, rounds: int) -> Result:
    # New entries go to the filled namespace on both sides, a few hundred in all.
    namespace = _namespace(pair, size)

    async def ours() -> None:
        await pair.view.save(namespace, MemoryEntry(content=CONTENT, key="new"))

    async def bare() -> None:
        await pair.bare.save(namespace, "new")

    times = await measure(ours, bare, operations=96 if callers == 1 else 320, callers=callers, rounds=rounds)
    aim, limit = (pair.single_aim, pair.single_limit) if callers == 1 else (0.3, 1.3)
    return Result(pair.name, "save", callers, size, *times, aim, limit)


async def _load_by_key(pair: Pair, size: int, callers: int, rounds: int) -> Result:
    namespace = _namespace(pair, size)
    keys = itertools.cycle([f"key {number}" for number in range(0, min(size, 5_000), 7)])

    async def ours() -> None:
        assert await pair.view.load_by_key(namespace, next(keys)) is not None

    async def bare() -> None:
        assert await pair.bare.load_by_key(namespace, next(keys)) is not None

    times = await measure(ours, bare, operations=192 if callers == 1 else 640, callers=callers, rounds=rounds)
    aim, limit = (pair.single_aim, pair.single_limit) if callers == 1 else (1.0, 1.3)
    return Result(pair.name, "load_by_key", callers, size, *times, aim, limit)


async def _load(pair: Pair, rounds: int) -> Result:
    namespace = f"{pair.name} thousand"
    await pair.view.save_many(namespace, [MemoryEntry(content=CONTENT, key=f"key {n}") for n in range(1_000)])
    await pair.bare.save_many(namespace, 1_000)

    async def ours() -> None:
        assert len(await pair.view.load(namespace)) == 1_000

    async def bare() -> None:
        assert len(await pair.bare.load(namespace)) == 1_000

    times = await measure(ours, bare, operations=5, rounds=rounds)
    return Result(pair.name, "load 1,000", 1, 1_000, *times, 1.3, 2.0)


async def _save_many(pair: Pair, rounds: int) -> Result:
    numbers = itertools.count()

    async def ours() -> None:
        namespace = f"bulk {next(numbers)}"
        await pair.view.save_many(namespace, [MemoryEntry(content=CONTENT, key=f"key {n}") for n in range(5_000)])

    async def bare() -> None:
        await pair.bare.save_many(f"bulk {next(numbers)}", 5_000)

    times = await measure(ours, bare, operations=1, rounds=rounds)
    return Result(pair.name, "save_many 5,000", 1, 5_000, *times, 1.1, 1.5)


async def _cleanup(pair: Pair, rounds: int) -> Result:
    """10,000 expired entries among what has gathered by now, well over 100,000."""
    past = datetime.now(UTC) - timedelta(hours=1)
    spent: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(rounds):
        for _ in range(2):
            batch = [MemoryEntry(content=CONTENT, expires_at=past) for _ in range(5_000)]
            await pair.view.save_many("expired", batch)
            await pair.bare.save_many("expired", 5_000, past)
        started = time.perf_counter()
        assert await pair.view.cleanup_expired() == 10_000
        spent["ours"].append(time.perf_counter() - started)
        started = time.perf_counter()
        assert await pair.bare.cleanup() == 10_000
        spent["bare"].append(time.perf_counter() - started)
    ours, bare = (statistics.median(spent[name]) * 1e6 for name in ("ours", "bare"))
    return Result(pair.name, "cleanup 10,000", 1, 100_000, ours, bare, 1.2, 1.5)
