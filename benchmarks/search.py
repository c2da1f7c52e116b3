"""How long a question takes over collections of several sizes: `python -m benchmarks.search`, or `make bench-search`.

Chunks are made of words whose frequencies fall as those of a language do (Zipf); the most frequent ones are its stop
words. A question has some of these and five others of the same distribution. Each question is a new one. Times are
medians in milliseconds, of blocking calls in a warm process.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from bisect import bisect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

import psycopg

from firefly_memory import EntryStore, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.knowledge import Chunk, KnowledgeStore
from firefly_memory.search.embedders.word_llama import WordLlamaEmbedder
from firefly_memory.search.hits import Mode
from firefly_memory.search.languages import stop_words
from tests.support import servers

_WORDS = 50_000
_QUESTIONS = 30
_AT_ONCE = 1_000
_SESSION = 20
_BY_MEANING: tuple[Mode, ...] = ("semantic", "hybrid")
_BY_TEXT: tuple[Mode, ...] = ("text", "fuzzy")

LIMITS = {("text", 700): 10.0, ("text", 60_000): 25.0, ("text", 1_000_000): 60.0}
OF_ONE_OWNER = 10.0
SEMANTIC = {700: 8.0, 50_000: 80.0}
SEMANTIC_ON_MONGODB = {700: 8.0, 50_000: 150.0}


class Row(NamedTuple):
    """One line of the table."""

    backend: str
    what: str
    milliseconds: float
    limit: float | None

    def __str__(self) -> str:
        verdict = "" if self.limit is None else "ok" if self.milliseconds <= self.limit else "MISSED"
        limit = "" if self.limit is None else f"at most {self.limit:g}"
        return f"{self.backend:<12}{self.what:<48}{self.milliseconds:>9.1f} ms  {limit} {verdict}"


class Language:
    """Makes texts and questions, the same ones in each run."""

    def __init__(self) -> None:
        self._random = random.Random(1911)
        letters = "abcdefghijklmnopqrstuvwxyz"
        made = ["".join(self._random.choices(letters, k=self._random.randint(4, 10))) for _ in range(_WORDS)]
        self._stops = sorted(stop_words("english"))
        self._words = [*self._stops, *made]
        self._weights = list(accumulate(1 / (rank + 2) for rank in range(len(self._words))))

    def text(self) -> str:
        return " ".join(self._word() for _ in range(self._random.randint(5, 40)))

    def question(self) -> str:
        others = (word for word in iter(self._word, "") if word not in self._stops)
        words = list(islice(others, 5))
        return " ".join(["what", "did", "the", *words])

    def _word(self) -> str:
        return self._words[bisect(self._weights, self._random.random() * self._weights[-1])]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--only", default="", help="sqlite, postgresql or mongodb")
    parser.add_argument("--sizes", type=int, nargs="*", default=[700, 60_000, 1_000_000], help="chunks of the index")
    parser.add_argument("--vectors", type=int, nargs="*", default=[700, 50_000], help="chunks with vectors")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, ExitStack() as running:
        for name, open_store in _stores(running, Path(directory)).items():
            if arguments.only in ("", name):
                for row in _of_store(name, open_store, sorted(arguments.sizes), sorted(arguments.vectors)):
                    print(row, flush=True)


def _stores(running: ExitStack, directory: Path) -> dict[str, Callable[[], tuple[EntryStore, Callable[[], None]]]]:
    """Each with what its database does by itself within a minute or so: until PostgreSQL has analyzed a table that has
    grown, it uses plans that were made for an empty one."""

    def postgresql() -> tuple[EntryStore, Callable[[], None]]:
        url = running.enter_context(servers.postgresql(durable=True))

        def analyze() -> None:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("ANALYZE")

        return PostgreSQLStore(url), analyze

    return {
        "sqlite": lambda: (SQLiteStore(directory / "memory.db"), lambda: None),
        "postgresql": postgresql,
        "mongodb": lambda: (MongoDBStore(running.enter_context(servers.mongodb())), lambda: None),
    }


def _of_store(
    name: str,
    open_store: Callable[[], tuple[EntryStore, Callable[[], None]]],
    sizes: list[int],
    of_vectors: list[int],
) -> Iterator[Row]:
    language = Language()
    opened, analyze = open_store()
    with opened as store:
        semantic = SEMANTIC_ON_MONGODB if name == "mongodb" else SEMANTIC
        embedded = KnowledgeStore(store, embedder=WordLlamaEmbedder())
        there = 0
        for size in of_vectors:
            yield _fill(name, embedded, language, "vectors", size - there, analyze)
            there = size
            for mode in _BY_MEANING:
                limit = semantic.get(size) if mode == "semantic" else None
                yield Row(name, f"{mode} over {size:,}", _median(embedded, language, "vectors", mode), limit)
        alone = KnowledgeStore(store, embedder=None)
        there = 0
        for size in sizes:
            yield _fill(name, alone, language, "texts", size - there, analyze)
            there = size
            for mode in _BY_TEXT:
                limit = LIMITS.get((mode, size))
                yield Row(name, f"{mode} over {size:,}", _median(alone, language, "texts", mode), limit)
        own = KnowledgeStore(store, embedder=None, space="ann")
        yield _fill(name, own, language, "texts", 700, analyze)
        what = f"text over 700 of one space among {there:,} of others"
        yield Row(name, what, _median(own, language, "texts", "text"), OF_ONE_OWNER)


def _fill(
    name: str,
    knowledge: KnowledgeStore,
    language: Language,
    collection: str,
    chunks: int,
    analyze: Callable[[], None] = lambda: None,
) -> Row:
    started = time.perf_counter()
    for first in range(0, chunks, _AT_ONCE):
        some = range(first, min(first + _AT_ONCE, chunks))
        knowledge.add(collection, [_chunk(language, number) for number in some])
    spent = time.perf_counter() - started
    analyze()
    return Row(name, f"added {chunks:,} chunks, each", spent / max(1, chunks) * 1_000, None)


def _chunk(language: Language, number: int) -> Chunk:
    session, position = divmod(number, _SESSION)
    return Chunk(language.text(), ("Anna", "Ben")[number % 2], None, f"session {session}", position)


def _median(knowledge: KnowledgeStore, language: Language, collection: str, mode: Mode) -> float:
    times = []
    for _ in range(_QUESTIONS + 3):
        question = language.question()
        started = time.perf_counter()
        knowledge.search(collection, question, 10, mode)
        times.append((time.perf_counter() - started) * 1_000)
    return statistics.median(times[3:])  # the first ones warm up


if __name__ == "__main__":
    main()
