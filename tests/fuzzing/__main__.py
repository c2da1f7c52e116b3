"""``python -m tests.fuzzing``: targets for minutes on end, each round with a seed that says how to have it again."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.support import servers
from tests.support.backends import Place

TARGETS = ("archives", "codec", "urls", "rows")

_ROUND = 20
"""Examples of one seed: few, so that every backend has its turn."""

_SHOWN = 60
"""Lines of a find: its end has the falsifying example."""

_WIDE = 2000


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", default=TARGETS, metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=15, help="for each target (15)")
    parser.add_argument("--backends", nargs="*", help="only these")
    parser.add_argument("--seed", type=int, help="only the round of this seed, with its smallest example")
    given = parser.parse_args()
    if unknown := set(given.targets) - set(TARGETS):
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    logging.disable()
    with ExitStack() as running:
        directory = running.enter_context(tempfile.TemporaryDirectory())
        os.chdir(directory)
        place = Place(
            Path(directory),
            cache(lambda: running.enter_context(servers.postgresql())),
            cache(lambda: running.enter_context(servers.mongodb())),
            running,
        )
        finds = sum(_fuzz(target, place, given) for target in given.targets)
    return 1 if finds else 0


def _fuzz(target: str, place: Place, given: argparse.Namespace) -> int:
    module = importlib.import_module(f"tests.fuzzing.{target}")
    examples: Counter[str] = Counter()
    finds = 0
    first = time.time_ns() % 10**9 if given.seed is None else given.seed
    end, number = time.monotonic() + 60 * given.minutes, first
    with module.bodies(place, given.backends) as chosen:
        while time.monotonic() < end:
            for name, body in chosen.items():
                finds += not _round(target, name, body, number, examples, shrinks=given.seed is not None)
            number += 1
            if given.seed is not None:
                break
    counts = ", ".join(f"{name} {count}" for name, count in examples.items())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    seeds = f"seeds {first} to {number - 1}"
    print(f"{target}: {seeds}, {finds} rounds with a find, peak {peak} MiB, examples: {counts}", flush=True)
    return finds


def _round(
    target: str,
    name: str,
    body: Callable[[st.DataObject], None],
    number: int,
    examples: Counter[str],
    *,
    shrinks: bool,
) -> bool:
    """Whether nothing was found."""

    def counted(data: st.DataObject) -> None:
        examples[name] += 1
        body(data)

    # Looking for the smallest example takes minutes, in which nothing else is found.
    phases = [Phase.generate, *([Phase.shrink] if shrinks else [])]
    rules = settings(
        max_examples=_ROUND, database=None, deadline=None, phases=phases, suppress_health_check=list(HealthCheck)
    )
    try:
        seed(number)(rules(given(st.data())(counted)))()
    except BaseException as found:
        if isinstance(found, KeyboardInterrupt):
            raise
        shown = [line[:_WIDE] for line in "".join(traceback.format_exception(found)).splitlines()[-_SHOWN:]]
        print(f"FOUND in {target} on {name}; again: {target} --seed {number} --backends {name}", *shown, sep="\n")
        sys.stdout.flush()
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
