"""Run the benchmarks, print them, write ``benchmarks/results.json`` and the tables in ``docs``."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

from benchmarks.agents import agents
from benchmarks.conversations import TOKENS, TOKENS_ARE_COUNTED
from benchmarks.entries import entries
from benchmarks.feeds import feeds
from benchmarks.long_term import long_term
from benchmarks.report import Rows, write
from benchmarks.start import start_up
from benchmarks.stores import Places
from benchmarks.turns import turns
from benchmarks.window_memory import peaks
from tests.support import servers

HERE = Path(__file__).parent
PARTS = ("entries", "turns", "feeds", "long_term", "agents", "memory", "start")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--what", nargs="*", choices=PARTS, default=PARTS, help="the parts to run")
    parser.add_argument("--only", default="", help="sqlite, postgresql or mongodb")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[10, 1_000, 100_000], help="entries of a namespace, turns or messages"
    )
    parser.add_argument("--facts", type=int, nargs="*", default=[1_000, 200_000], help="facts of long-term memory")
    parser.add_argument("--no-report", action="store_true", help="print only, and write no files")
    arguments = parser.parse_args()
    measured: dict[str, Rows] = {}
    with servers.postgresql(durable=True) as postgresql_url, servers.mongodb() as mongodb_url:
        for part in arguments.what:
            with tempfile.TemporaryDirectory() as directory:
                places = Places(Path(directory), postgresql_url, mongodb_url, arguments.only)
                measured[part] = _run(part, places, arguments)
    if not arguments.no_report:
        write(measured, HERE / "results.json", HERE.parent / "docs")


def _run(part: str, places: Places, arguments: argparse.Namespace) -> Rows:
    match part:
        case "entries":
            return asyncio.run(_noted(entries(places, arguments.sizes, arguments.rounds)))
        case "turns":
            print(f"A turn has {TOKENS} tokens, {'counted' if TOKENS_ARE_COUNTED else 'estimated'}.", flush=True)
            return asyncio.run(_noted(turns(places, arguments.sizes, arguments.rounds)))
        case "feeds":
            return asyncio.run(_noted(feeds(places, arguments.sizes, arguments.rounds)))
        case "long_term":
            return asyncio.run(_noted(long_term(places, arguments.facts, arguments.rounds)))
        case "agents":
            return asyncio.run(_noted(agents(places, arguments.rounds)))
        case "memory":
            rows = []
            for peak in peaks(places):
                print(peak, flush=True)
                rows.append(peak.as_dict())
            return rows
    starts = start_up(arguments.rounds)
    for process, milliseconds in starts.items():
        print(f"{process:<30} {milliseconds:>8.1f} ms", flush=True)
    return [{"process": process, "ms": milliseconds} for process, milliseconds in starts.items()]


class Measured(Protocol):
    """A line of a table."""

    def as_dict(self) -> dict[str, object]: ...


async def _noted(results: AsyncIterator[Measured]) -> Rows:
    rows: Rows = []
    async for result in results:
        print(result, flush=True)
        rows.append(result.as_dict())
    return rows


if __name__ == "__main__":
    main()
