"""Changes the library in places chosen by chance, and says which changes no test notices: ``python -m mutants``."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from contextlib import ExitStack

from mutants.changes import changes_of
from mutants.reached import HOME, ROOT, Reached, measure, reached
from mutants.trial import Mutant, Verdict, copy_of_repository, tests_for, tried
from tests.support import servers

ENOUGH = 0.9
"""The share of mutants that the tests have to catch."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--measure", action="store_true", help="first run the tests, and note which lines each reaches")
    parser.add_argument("--tests", nargs="*", default=["tests"], help="the tests to measure, by default all")
    parser.add_argument("--processes", default="2", help="for the measurement")
    parser.add_argument("--sample", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31), help="of the choice")
    parser.add_argument("--only", default="", help="files whose path contains this text")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.tests, arguments.processes)
    found = reached()
    chosen = list(_chosen(found, arguments.only, arguments.sample, random.Random(arguments.seed)))
    print(f"{len(chosen)} mutants, seed {arguments.seed}", flush=True)
    verdicts = _all_tried(chosen, found)
    survivors = [str(mutant) for mutant, verdict in verdicts.items() if verdict is Verdict.SURVIVED]
    caught = 1 - len(survivors) / len(verdicts) if verdicts else 0
    (HOME / "survivors.json").write_text(json.dumps(survivors, indent=2))
    print(f"{caught:.0%} of {len(verdicts)} were caught; {len(survivors)} survived:", *survivors, sep="\n")
    return 0 if caught >= ENOUGH else 1


def _chosen(found: Reached, only: str, sample: int, choice: random.Random) -> Iterator[Mutant]:
    """Mutants of lines that a test reaches. The rules of the conformance kit are tests themselves."""
    mutants = [
        Mutant(file, change)
        for file, lines in sorted(found.tests.items())
        if only in str(file) and "testing/rules" not in file.as_posix()
        for change in changes_of((ROOT / file).read_bytes())
        if lines.get(change.line)
    ]
    yield from choice.sample(mutants, min(sample, len(mutants)))


def _all_tried(mutants: list[Mutant], found: Reached) -> dict[Mutant, Verdict]:
    verdicts: dict[Mutant, Verdict] = {}
    with ExitStack() as running:
        variables = {
            "FIREFLY_TEST_POSTGRES_URL": running.enter_context(servers.postgresql()),
            "FIREFLY_TEST_MONGODB_URL": running.enter_context(servers.mongodb()),
        }
        copy = copy_of_repository(HOME / "copy")
        for number, mutant in enumerate(mutants, 1):
            verdicts[mutant] = tried(mutant, copy, tests_for(mutant, found), variables)
            print(f"{number:4} {verdicts[mutant].value:9} {mutant}", flush=True)
    return verdicts


if __name__ == "__main__":
    raise SystemExit(main())
