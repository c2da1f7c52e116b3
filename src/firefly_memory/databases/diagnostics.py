"""What an examination of a store finds: a look at one thing, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Difference:
    """One object of a database that is not as it should be."""

    what: str
    found: str
    expected: str
    mend: str
    """The statements that mend it."""

    def __str__(self) -> str:
        return f"{self.what} is {self.found}; it should be {self.expected}"


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    what: str
    found: str
    do: str = ""
    """Empty where nothing is to be done."""


def ok(what: str, found: str) -> Finding:
    return Finding(Level.OK, what, found)


def warning(what: str, found: str, do: str) -> Finding:
    return Finding(Level.WARNING, what, found, do)


def problem(what: str, found: str, do: str) -> Finding:
    return Finding(Level.PROBLEM, what, found, do)


def of_memory(_: str, **__: Any) -> Iterator[Finding]:
    """Of a store in memory."""
    yield warning("store", "it is in memory and ends with the process", "use another one to keep it")


_UNNOTICED = timedelta(seconds=1)
_MUCH = timedelta(minutes=1)


def clock_skew(asked: datetime, server: datetime, answered: datetime) -> Finding:
    """How far the server's clock is from ours, which was read before the question and after the answer."""
    round_trip = answered - asked
    skew = server - (asked + round_trip / 2)
    ahead = "ahead of" if skew > timedelta() else "behind"
    found = f"the server's is {abs(skew).total_seconds():.1f} s {ahead} the one here"
    if abs(skew) <= _UNNOTICED + round_trip / 2:
        return ok("clock", "the server's and the one here agree")
    finding = warning if abs(skew) <= _MUCH else problem
    return finding("clock", found, "synchronise both by NTP: expiry goes by the clock of whoever reads")
