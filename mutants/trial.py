"""One trial: a copy of the repository with one change, and the tests that reach the line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mutants.changes import Change
from mutants.reached import ROOT, Reached

_COPIED = ["src", "tests", "migrations", "examples", "environments", "mutants", "docs"]
_COPIED += ["pyproject.toml", "alembic.ini", "README.md"]
_SECONDS = 60.0
"""Of tests for one mutant, by what they took when they were measured."""


class Verdict(Enum):
    """What became of a mutant."""

    CAUGHT = "caught"
    HUNG = "caught: the tests did not end"
    SURVIVED = "SURVIVED"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one file."""

    file: Path
    change: Change

    def __str__(self) -> str:
        return f"{self.file}:{self.change.line}: {self.change}"


def copy_of_repository(directory: Path) -> Path:
    """A copy in which files may be changed."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name in _COPIED:
        there = ROOT / name
        if there.is_dir():
            shutil.copytree(there, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(there, directory / name)
    (directory / ".cache").symlink_to(ROOT / ".cache")
    return directory


def tests_for(mutant: Mutant, reached: Reached) -> list[list[str]]:
    """The tests that reach the line, and then others that reach the file: a line that runs once in a process, such as
    that of a table, is noted for one test and seen by many."""
    lines = reached.tests[mutant.file]
    of_line = set(lines.get(mutant.change.line, ()))
    of_file = {test for tests in lines.values() for test in tests} - of_line
    return [tests for tests in (_quickest(of_line, reached), _quickest(of_file, reached)) if tests]


def _quickest(tests: set[str], reached: Reached) -> list[str]:
    """As many as there is time for."""
    chosen: list[str] = []
    left = _SECONDS
    for test in sorted(tests, key=lambda each: (reached.seconds.get(each, 1.0), each)):
        left -= reached.seconds.get(test, 1.0)
        if left < 0 and chosen:
            break
        chosen.append(test)
    return chosen


def tried(mutant: Mutant, copy: Path, rounds: list[list[str]], variables: dict[str, str]) -> Verdict:
    """Run one list of tests after the other in the ``copy`` while it has the change, until one fails."""
    file = copy / mutant.file
    source = file.read_bytes()
    file.write_bytes(mutant.change.applied_to(source))
    try:
        for tests in rounds:
            if not _passed(tests, copy, variables):
                return Verdict.CAUGHT
    except subprocess.TimeoutExpired:
        return Verdict.HUNG
    finally:
        file.write_bytes(source)
    return Verdict.SURVIVED


def _passed(tests: list[str], copy: Path, variables: dict[str, str]) -> bool:
    names = copy / "names-of-tests"
    names.write_text("\n".join(tests))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"@{names}"]
    environment = {**os.environ, **variables, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False, timeout=5 * _SECONDS)
    return ended.returncode == 0
