"""What a history is made of: operations, each with the instants between which it took effect, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

NEVER = 2**63
"""The end of an operation whose answer never came: it may take effect at any time."""


class Kind(StrEnum):
    """What an operation does; in ``arguments`` and ``result`` is what belongs to it."""

    APPEND = "append"
    """``text``, perhaps ``idempotency_key`` or ``expected_turns``. The result is the number of the turn."""
    READ = "read"
    """Perhaps ``first``, the number of the first turn it asks for. The result is a dict: ``turns`` are pairs of number
    and text, and ``total`` is how many turns there were, or ``None`` if the read does not tell."""
    GET = "get"
    SET = "set"
    DELETE = "delete"
    COMPARE_AND_SET = "compare_and_set"
    """``expected``, where ``None`` is no value, and ``value``. The result is whether it was set."""
    INCREMENT = "increment"
    """``by``. The result is the sum."""


class Outcome(StrEnum):
    """What is known of the effect of an operation."""

    DONE = "done"
    FAILED = "failed"
    """An error says that nothing was written."""
    UNKNOWN = "unknown"
    """It may have taken effect, or may do so later, or never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation on a conversation or a fact: ``begin`` and ``end`` are nanoseconds of one monotonic clock."""

    worker: str
    kind: Kind
    target: str
    """The id of the conversation, or the key of the fact."""
    begin: int
    end: int = NEVER
    outcome: Outcome = Outcome.UNKNOWN
    result: Any = None
    error: str = ""
    turns_seen: int | None = None
    """How many turns the conversation has, as an error says that refuses an append."""
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        return self.outcome is Outcome.DONE

    @property
    def may_have_been_done(self) -> bool:
        return self.outcome is not Outcome.FAILED

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items() if value is not None)
        return f"{self.worker}: {self.kind}({given}) on {self.target} {self._ended()}"

    def _ended(self) -> str:
        if self.is_done:
            return f"-> {self.result!r}"
        return f"{'failed' if self.outcome is Outcome.FAILED else 'has no known outcome'} {self.error}".rstrip()


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong, and the operations that show it."""

    problem: str
    operations: tuple[Operation, ...]

    def __str__(self) -> str:
        """The problem, and a line for each operation, with its milliseconds since the first of them began."""
        shown = sorted(self.operations, key=lambda each: each.begin)
        start = shown[0].begin if shown else 0
        return "\n".join([self.problem, *(f"  {_span(each, start)}  {each}" for each in shown)])


def _span(operation: Operation, start: int) -> str:
    end = "      …" if operation.end == NEVER else f"{(operation.end - start) / 1e6:7.3f}"
    return f"[{(operation.begin - start) / 1e6:7.3f} {end}]"


def by_target(history: Iterable[Operation]) -> dict[str, list[Operation]]:
    """The operations on each conversation or fact, in the order in which they began."""
    found: dict[str, list[Operation]] = {}
    for each in sorted(history, key=lambda each: each.begin):
        found.setdefault(each.target, []).append(each)
    return found
