"""The pure checker: a history in, its violations out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from firefly_memory.errors import CorruptDataError
from firefly_memory.testing.histories.appends import violations_of_turns
from firefly_memory.testing.histories.facts import TooManyStatesError, violations_of_fact
from firefly_memory.testing.histories.operation import Kind, Operation, Violation, by_target


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checker found."""

    violations: tuple[Violation, ...]
    """The one with the shortest explanation comes first."""
    undecided: tuple[str, ...]
    """The facts whose history has too many possible orders to look at all of them."""


def verdict_on(history: Iterable[Operation]) -> Verdict:
    """Whether ``history`` is strictly serializable. The last operation on each conversation must read all of it."""
    violations: list[Violation] = []
    undecided: list[str] = []
    for target, operations in by_target(history).items():
        is_conversation = any(each.kind in (Kind.APPEND, Kind.READ) for each in operations)
        violations += [Violation("what is stored is damaged", (each,)) for each in operations if _is_damage(each)]
        try:
            violations += (violations_of_turns if is_conversation else violations_of_fact)(operations)
        except TooManyStatesError:
            undecided.append(target)
    violations.sort(key=lambda each: len(each.operations))
    return Verdict(tuple(violations), tuple(undecided))


def _is_damage(operation: Operation) -> bool:
    return operation.error.startswith(CorruptDataError.__name__)
