"""Measure searches, in an environment that has the contenders: ``python -m …search_measurements DIRECTORY URL SIZE…``.

Each finished part is a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.comparison.places import Places
from benchmarks.comparison.search_contenders import SEARCH_CONTENDERS, SearchContender, cannot_run
from benchmarks.harness import Work, interleaved
from benchmarks.search_texts import Language
from evaluation.corpus import HELD_OUT, TUNING, Conversation, conversations
from evaluation.figures import figures
from firefly_memory.knowledge import Chunk

_QUESTIONS = 15
_AT_ONCE = 500
_TOGETHER = "together"
_PUTS, _ROUNDS = 20, 9


def main(directory: str, postgresql_url: str, *sizes: str) -> None:
    places = Places(Path(directory), postgresql_url)
    print(json.dumps({"contenders": _contenders()}), flush=True)
    with ExitStack() as stack:
        opened: dict[str, SearchContender] = {}
        for name, make in SEARCH_CONTENDERS.items():
            if cannot_run(make) is None:
                opened[name] = make(places.named(make.__name__, make.backend))
                opened[name].open()
                stack.enter_context(closing(opened[name]))
        print(json.dumps({"quality": [_quality(name, each) for name, each in opened.items()]}), flush=True)
        language, there = Language(), 0
        times: list[dict[str, Any]] = []
        for size in map(int, sizes):
            chunks = [language.chunk(number) for number in range(there, size)]
            there = size
            times += _filled(opened, chunks, size)
            times += _searched(opened, language, size)
        print(json.dumps({"times": times}), flush=True)
        print(json.dumps({"puts": _puts(opened, language)}), flush=True)


def _contenders() -> list[dict[str, Any]]:
    return [
        {"contender": name, "name": make.name, "backend": make.backend, "package": make.package}
        | {"version": version(make.package), "compares": make.compares, "cannot_run": cannot_run(make)}
        for name, make in SEARCH_CONTENDERS.items()
    ]


def _quality(name: str, contender: SearchContender) -> dict[str, Any]:
    """Recall and MRR for questions that no setting was chosen by: asked of their conversation alone, and of all."""
    held_out = conversations(HELD_OUT)
    corpus = [*held_out, *conversations(TUNING)]
    turn_of: dict[str, str] = {}
    for collection, some in [*((each.name, [each]) for each in corpus), (_TOGETHER, corpus)]:
        turn_of |= _fill_turns(contender, collection, some)
    asked = {question.text: each.name for each in held_out for question in each.questions}
    questions = [question for each in held_out for question in each.questions]
    alone = figures(questions, lambda text: _turns(contender, asked[text], text, turn_of))
    together = figures(questions, lambda text: _turns(contender, _TOGETHER, text, turn_of))
    return {"contender": name, "questions": len(questions)} | {
        "recall_10": round(alone.recall_10, 1),
        "mrr": round(alone.mrr, 1),
        "recall_10_together": round(together.recall_10, 1),
        "mrr_together": round(together.mrr, 1),
    }


def _fill_turns(contender: SearchContender, collection: str, some: Sequence[Conversation]) -> dict[str, str]:
    turns = [turn for each in some for turn in each.turns]
    chunks = [Chunk(turn.text, turn.who, turn.day, turn.session, turn.position) for turn in turns]
    names = [name for start in range(0, len(chunks), _AT_ONCE) for name in _fill(contender, collection, chunks, start)]
    return dict(zip(names, (turn.id for turn in turns), strict=True))


def _fill(contender: SearchContender, collection: str, chunks: Sequence[Chunk], start: int) -> list[str]:
    return contender.fill(collection, chunks[start : start + _AT_ONCE])


def _turns(contender: SearchContender, collection: str, question: str, turn_of: Mapping[str, str]) -> list[str]:
    return [turn_of[name] for name in contender.search(collection, question)]


def _filled(opened: Mapping[str, SearchContender], chunks: Sequence[Chunk], size: int) -> list[dict[str, Any]]:
    rows = []
    for name, contender in opened.items():
        started = time.perf_counter()
        for start in range(0, len(chunks), _AT_ONCE):
            _fill(contender, "texts", chunks, start)
        each = (time.perf_counter() - started) / len(chunks) * 1_000
        rows.append({"contender": name, "operation": "fill", "size": size, "ms": round(each, 3)})
        if contender.backend == "postgresql":
            with psycopg.connect(contender.place.postgresql_url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
    return rows


def _searched(opened: Mapping[str, SearchContender], language: Language, size: int) -> list[dict[str, Any]]:
    """All take turns with each question."""
    spent: dict[str, list[float]] = {name: [] for name in opened}
    for _ in range(_QUESTIONS + 2):
        question = language.question()
        for name, contender in opened.items():
            started = time.perf_counter()
            contender.search("texts", question)
            spent[name].append((time.perf_counter() - started) * 1_000)
    return [
        {"contender": name, "operation": "search", "size": size, "ms": round(statistics.median(times[2:]), 3)}
        for name, times in spent.items()  # the first ones warm up
    ]


def _puts(opened: Mapping[str, SearchContender], language: Language) -> list[dict[str, Any]]:
    """One document in a call, in collections of a few hundred."""
    works = {name: _putting(contender, language) for name, contender in opened.items()}
    spent = asyncio.run(interleaved(works, operations=_PUTS, rounds=_ROUNDS))
    return [{"contender": name, "ms": round(each / 1_000, 3)} for name, each in spent.items()]


def _putting(contender: SearchContender, language: Language) -> Work:
    chunks = iter([language.chunk(number) for number in range(_PUTS * (_ROUNDS + 1))])

    async def put() -> None:
        contender.put("puts", next(chunks))

    return put


if __name__ == "__main__":
    main(*sys.argv[1:])
