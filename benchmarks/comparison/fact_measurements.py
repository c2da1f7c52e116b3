"""Measure stores of facts, in an environment with the contenders: ``python -m …fact_measurements DIRECTORY URL SIZE…``.

Each finished part is a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from importlib.metadata import version
from itertools import count, islice
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.comparison.fact_contenders import FACT_CONTENDERS, FactContender
from benchmarks.comparison.places import Places
from benchmarks.harness import Work, interleaved
from benchmarks.long_term_facts import OF_A_PERSON, Whose, facts, people, personal_key

_AT_ONCE = 500
_OPERATIONS, _ROUNDS = 32, 7
_STEP = 7

Do = Callable[[FactContender, Whose, int], Any]
"""Given a contender, a person, and how many times it was done before."""


def main(directory: str, postgresql_url: str, *sizes: str) -> None:
    places = Places(Path(directory), postgresql_url)
    print(json.dumps({"contenders": _contenders()}), flush=True)
    times = [row for size in map(int, sizes) for row in _measured(places, size)]
    print(json.dumps({"times": times}), flush=True)


def _contenders() -> list[dict[str, Any]]:
    return [
        {"contender": name, "name": make.name, "backend": make.backend, "package": make.package}
        | {"version": version(make.package)}
        for name, make in FACT_CONTENDERS.items()
    ]


def _measured(places: Places, size: int) -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        opened: dict[str, FactContender] = {}
        for name, make in FACT_CONTENDERS.items():
            opened[name] = make(places.named(f"{make.__name__}_{size}", make.backend))
            opened[name].open()
            stack.enter_context(closing(opened[name]))
            _fill(opened[name], size)
        for operation, do in _OPERATIONS_OF.items():
            works = {name: _work(contender, size, do) for name, contender in opened.items()}
            spent = asyncio.run(interleaved(works, operations=_OPERATIONS, rounds=_ROUNDS))
            for name, each in spent.items():
                yield {"contender": name, "operation": operation, "size": size, "us": round(each, 1)}


def _fill(contender: FactContender, size: int) -> None:
    everything = facts(size)
    while some := list(islice(everything, _AT_ONCE)):
        contender.fill(some)
    if contender.backend == "postgresql":
        with psycopg.connect(contender.place.postgresql_url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")


def _work(contender: FactContender, size: int, do: Do) -> Work:
    turns, everybody = count(), people(size)

    async def work() -> None:
        turn = next(turns)
        do(contender, Whose("user", everybody[turn * _STEP % len(everybody)]), turn)

    return work


def _get(contender: FactContender, person: Whose, turn: int) -> None:
    assert contender.get(person, personal_key(turn))


def _list(contender: FactContender, person: Whose, _: int) -> None:
    assert len(contender.listed(person, OF_A_PERSON)) == OF_A_PERSON


def _add(contender: FactContender, person: Whose, turn: int) -> None:
    contender.put(person, f"learned_{turn:06}", "The office is closed on Mondays.")


def _replace(contender: FactContender, person: Whose, turn: int) -> None:
    contender.put(person, personal_key(turn), f"Since visit {turn} it is another one.")


_OPERATIONS_OF: Mapping[str, Do] = {"get": _get, "list 10": _list, "put a new key": _add, "put a new value": _replace}


if __name__ == "__main__":
    main(*sys.argv[1:])
