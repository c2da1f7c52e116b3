"""Run the benchmarks, print the table, write ``benchmarks/results.json`` and the table in ``docs/performance.md``."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.bare import CONTENT
from benchmarks.harness import Result, measure
from benchmarks.report import write_table
from benchmarks.stores import Pair, pairs, settle
from firefly_memory import MemoryEntry
from tests import servers

HERE = Path(__file__).parent


async def run(arguments: argparse.Namespace, postgresql_url: str, mongodb_url: str) -> list[Result]:
    results: list[Result] = []

    def note(result: Result) -> None:
        results.append(result)
        print(result, flush=True)

    with tempfile.TemporaryDirectory() as directory:
        async with pairs(Path(directory), postgresql_url, mongodb_url, arguments.only) as compared:
            for entries in arguments.entries:
                for pair in compared:
                    await _fill(pair, entries)
                settle(postgresql_url, mongodb_url, arguments.only)
                for pair in compared:
                    for callers in (1, 32) if pair.concurrent else (1,):
                        note(await _save(pair, entries, callers, arguments.rounds))
                        note(await _load_by_key(pair, entries, callers, arguments.rounds))
            for pair in compared:
                note(await _load(pair, arguments.rounds))
                note(await _save_many(pair, arguments.rounds))
                note(await _cleanup(pair, max(3, arguments.rounds // 3)))
    return results


def _namespace(pair: Pair, entries: int) -> str:
    return f"{pair.name} {entries}"


async def _fill(pair: Pair, entries: int) -> None:
    namespace = _namespace(pair, entries)
    for start in range(0, entries, 5_000):
        batch = range(start, min(entries, start + 5_000))
        await pair.view.save_many(namespace, [MemoryEntry(content=CONTENT, key=f"key {n}") for n in batch])
        await pair.bare.save_many(namespace, len(batch))


async def _save(pair: Pair, entries: int, callers: int, rounds: int) -> Result:
    # New entries go to the filled namespace on both sides, a few hundred in all.
    namespace = _namespace(pair, entries)

    async def ours() -> None:
        await pair.view.save(namespace, MemoryEntry(content=CONTENT, key="new"))

    async def bare() -> None:
        await pair.bare.save(namespace, "new")

    times = await measure(ours, bare, operations=96 if callers == 1 else 320, callers=callers, rounds=rounds)
    aim, limit = (pair.single_aim, pair.single_limit) if callers == 1 else (0.3, 1.3)
    return Result(pair.name, "save", callers, entries, *times, aim, limit)


async def _load_by_key(pair: Pair, entries: int, callers: int, rounds: int) -> Result:
    namespace = _namespace(pair, entries)
    keys = itertools.cycle([f"key {number}" for number in range(0, min(entries, 5_000), 7)])

    async def ours() -> None:
        assert await pair.view.load_by_key(namespace, next(keys)) is not None

    async def bare() -> None:
        assert await pair.bare.load_by_key(namespace, next(keys)) is not None

    times = await measure(ours, bare, operations=192 if callers == 1 else 640, callers=callers, rounds=rounds)
    aim, limit = (pair.single_aim, pair.single_limit) if callers == 1 else (1.0, 1.3)
    return Result(pair.name, "load_by_key", callers, entries, *times, aim, limit)


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


def start_up(rounds: int) -> dict[str, float]:
    """Milliseconds from the start of a process, interleaved with one that does nothing."""
    with tempfile.TemporaryDirectory() as directory:
        first = (
            "import sys; from firefly_memory import SQLiteStore, MemoryEntry; "
            "SQLiteStore(sys.argv[1]).save('n', MemoryEntry(content=1))"
        )
        existing = f"{directory}/existing.db"
        subprocess.run([sys.executable, "-c", first, existing], check=True)
        commands = {
            "python alone": ["pass"],
            "import firefly_memory": ["import firefly_memory"],
            "import pydantic, sqlalchemy": ["import pydantic, sqlalchemy"],
            "first write, existing file": [first, existing],
            "first write, new file": [first, ""],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(rounds):
            for name, command in commands.items():
                arguments = [part or f"{directory}/new-{number}.db" for part in command]
                started = time.perf_counter()
                subprocess.run([sys.executable, "-c", *arguments], check=True)
                times[name].append((time.perf_counter() - started) * 1e3)
    return {name: round(statistics.median(taken), 1) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help="sqlite, postgresql or mongodb")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--entries", type=int, nargs="*", default=[10, 1_000, 100_000], help="sizes of the namespaces")
    parser.add_argument("--no-report", action="store_true", help="print only, and write no files")
    arguments = parser.parse_args()
    with servers.postgresql() as postgresql_url, servers.mongodb() as mongodb_url:
        results = asyncio.run(run(arguments, postgresql_url, mongodb_url))
    starts = start_up(arguments.rounds)
    for name, milliseconds in starts.items():
        print(f"{name:<30} {milliseconds:>8.1f} ms")
    if not arguments.no_report:
        report = {
            "date": datetime.now(UTC).date().isoformat(),
            "python": platform.python_version(),
            "results": [result.as_dict() for result in results],
            "start_up_ms": starts,
        }
        (HERE / "results.json").write_text(json.dumps(report, indent=2) + "\n")
        write_table(report, HERE.parent / "docs" / "performance.md")


if __name__ == "__main__":
    main()
