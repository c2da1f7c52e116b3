"""How long a question takes over collections of several sizes, and what the index costs a write: `make bench-search`.

Times are medians in milliseconds, of blocking calls in a warm process. Each question is a new one.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.search_loading import Place, fill
from benchmarks.search_report import PAGE, RESULTS, Cost, Row, write
from benchmarks.search_texts import Language
from benchmarks.search_writes import costs, sides
from firefly_memory import EntryStore
from firefly_memory.knowledge import KnowledgeStore
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder
from firefly_memory.search.hits import Mode
from tests.support import servers

_QUESTIONS = 30
_OF_OWNER = 700
_BY_MEANING: tuple[Mode, ...] = ("semantic", "hybrid")
_BY_TEXT: tuple[Mode, ...] = ("text", "fuzzy")

LIMITS = {("text", 700): 10.0, ("text", 60_000): 25.0, ("text", 1_000_000): 60.0}
OF_ONE_OWNER = 10.0
SEMANTIC = {700: 8.0, 50_000: 80.0}
SEMANTIC_ON_MONGODB = {700: 8.0, 50_000: 150.0}

BACKENDS = ("sqlite", "postgresql", "mongodb")
PARTS = ("writes", "questions")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--only", default="", help="sqlite, postgresql or mongodb")
    parser.add_argument("--what", nargs="*", choices=PARTS, default=PARTS, help="the parts to run")
    parser.add_argument("--sizes", type=int, nargs="*", default=[700, 60_000, 1_000_000], help="chunks of the index")
    parser.add_argument("--vectors", type=int, nargs="*", default=[700, 50_000], help="chunks with vectors")
    parser.add_argument("--rounds", type=int, default=9, help="of the writes, which take turns")
    parser.add_argument("--no-report", action="store_true", help="print only, and write no files")
    arguments = parser.parse_args()
    for name in BACKENDS:
        if arguments.only not in ("", name):
            continue
        for part in arguments.what:
            lines = _costs(name, arguments) if part == "writes" else _questions(name, arguments)
            rows = []
            for row in lines:
                print(row, flush=True)
                rows.append(row.as_dict())
            if not arguments.no_report:
                write({part: {name: rows}}, RESULTS, PAGE)


def _costs(name: str, arguments: argparse.Namespace) -> Iterator[Cost]:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as running:
        yield from costs(name, sides(name, _address(name, running, Path(directory))), arguments.rounds)


def _questions(name: str, arguments: argparse.Namespace) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as running:
        place = Place(name, _address(name, running, Path(directory)))
        with place.open() as store:
            yield from _of_store(place, store, sorted(arguments.sizes), sorted(arguments.vectors))


def _address(name: str, running: ExitStack, directory: Path) -> str:
    match name:
        case "sqlite":
            return str(directory / "memory.db")
        case "postgresql":
            return running.enter_context(servers.postgresql(durable=True))
    return running.enter_context(servers.mongodb())


def _of_store(place: Place, store: EntryStore, sizes: list[int], of_vectors: list[int]) -> Iterator[Row]:
    name, language = place.backend, Language(seed=1)
    semantic = SEMANTIC_ON_MONGODB if name == "mongodb" else SEMANTIC
    embedded = KnowledgeStore(store, embedder=WordLlamaEmbedder())
    there = 0
    for size in of_vectors:
        yield _added(name, size - there, fill(place, "vectors", there, size, vectors=True))
        there = size
        for mode in _BY_MEANING:
            limit = semantic.get(size) if mode == "semantic" else None
            yield Row(name, mode, size, _median(embedded, language, "vectors", mode), limit)
    there = 0
    for size in sizes:
        yield _added(name, size - there, fill(place, "texts", there, size))
        there = size
        for mode in _BY_TEXT:
            yield Row(name, mode, size, _median(embedded, language, "texts", mode), LIMITS.get((mode, size)))
    yield _added(name, _OF_OWNER, fill(place, "own", 0, _OF_OWNER, owner="ann"))
    what = f"text of one owner among {there:,} of others"
    yield Row(name, what, _OF_OWNER, _median(embedded, language, "own", "text", "ann"), OF_ONE_OWNER)


def _added(name: str, chunks: int, seconds: float) -> Row:
    return Row(name, "added, each", chunks, seconds / max(1, chunks) * 1_000, None)


def _median(
    knowledge: KnowledgeStore, language: Language, collection: str, mode: Mode, owner: str | None = None
) -> float:
    times = []
    for _ in range(_QUESTIONS + 3):
        question = language.question()
        started = time.perf_counter()
        knowledge.search(collection, question, 10, mode, owner=owner)
        times.append((time.perf_counter() - started) * 1_000)
    return statistics.median(times[3:])  # the first ones warm up


if __name__ == "__main__":
    main()
