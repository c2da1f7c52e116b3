"""Whether the operations on one fact are linearizable: whether there is an order of them that explains every result.

The order must keep real time: what had ended when another began comes before it. It is searched for as Wing and Gong do
(Testing and Verifying Concurrent Objects, 1993), with the states remembered that led nowhere (Lowe, 2017).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from firefly_memory.testing.histories.operation import NEVER, Kind, Operation, Outcome, Violation

MOST_STATES = 50_000
"""How many states of one fact are looked at; a search that needs more is given up."""

_STATES_OF_AN_EXPLANATION = 2_000


class TooManyStatesError(Exception):
    """The search was given up: the history neither has a violation nor is without one, as far as is known."""


def violations_of_fact(operations: list[Operation]) -> Iterator[Violation]:
    """What is wrong with the operations on one fact, which had no value at first."""
    relevant = [each for each in operations if _says_something(each)]
    plain = [*_two_winners(relevant), *_values_of_nobody(relevant)]
    yield from plain
    if not plain and not is_linearizable(relevant):
        yield Violation("no order of these operations on a fact explains their results", _shortest(relevant))


def _says_something(operation: Operation) -> bool:
    if operation.outcome is Outcome.FAILED:
        return False
    return operation.is_done or operation.kind is not Kind.GET


def _two_winners(operations: list[Operation]) -> Iterator[Violation]:
    """The plainest violation, in plain words: a value that came into being once was replaced twice."""
    if any(each.kind in (Kind.INCREMENT, Kind.DELETE) for each in operations):
        return
    winners: dict[str, list[Operation]] = {}
    for each in operations:
        if each.kind is Kind.COMPARE_AND_SET and each.result is True:
            winners.setdefault(repr(each.arguments["expected"]), []).append(each)
    for expected, those in winners.items():
        times = sum(repr(each.arguments.get("value")) == expected for each in operations if each.kind is not Kind.GET)
        if len(those) > max(times, 1):
            yield Violation(f"{len(those)} calls of compare_and_set that expect {expected} have won", tuple(those))


def _values_of_nobody(operations: list[Operation]) -> Iterator[Violation]:
    if any(each.kind is Kind.INCREMENT for each in operations):
        return
    values = [None, *(each.arguments.get("value") for each in operations)]
    for each in operations:
        if each.kind is Kind.GET and each.result not in values:
            yield Violation(f"a read gives {each.result!r}, which nobody set", (each,))


def is_linearizable(operations: list[Operation], most_states: int | None = None) -> bool:
    """Whether an order explains all results. An operation without an answer may have been done, or not."""
    ordered = sorted(operations, key=lambda each: each.begin)
    needed = sum(1 << place for place, each in enumerate(ordered) if each.is_done)
    ahead: list[tuple[int, Any]] = [(0, None)]
    known = {(0, None)}
    while ahead:
        done, value = ahead.pop()
        done = _with_all_that_fit(ordered, done, value)
        if done & needed == needed:
            return True
        for place in _possible_next(ordered, done):
            fits, after = _applied(ordered[place], value)
            state = done | 1 << place, after
            is_useful = ordered[place].is_done or after != value
            if fits and is_useful and state not in known:
                known.add(state)
                ahead.append(state)
        if len(known) > (most_states or MOST_STATES):
            raise TooManyStatesError
    return False


def _with_all_that_fit(ordered: list[Operation], done: int, value: Any) -> int:
    """What may come next, changes nothing and has the right result comes now: later it would be no better."""
    is_changed = True
    while is_changed:
        is_changed = False
        for place in _possible_next(ordered, done):
            each = ordered[place]
            is_look = each.kind is Kind.GET or (each.kind is Kind.COMPARE_AND_SET and each.result is False)
            if each.is_done and is_look and _applied(each, value)[0]:
                done |= 1 << place
                is_changed = True
    return done


def _possible_next(ordered: list[Operation], done: int) -> Iterator[int]:
    """Those that began before any other that is left had ended."""
    first_end = NEVER
    for place in range((~done & (done + 1)).bit_length() - 1, len(ordered)):
        each = ordered[place]
        if each.begin > first_end:
            return
        if not done >> place & 1:
            yield place
            if each.is_done:
                first_end = min(first_end, each.end)


def _applied(operation: Operation, value: Any) -> tuple[bool, Any]:
    """Whether the result is right where the fact has ``value``, and the value after it."""
    given, known = operation.arguments, operation.is_done
    match operation.kind:
        case Kind.GET:
            return _same(operation.result, value), value
        case Kind.SET:
            return True, given["value"]
        case Kind.DELETE:
            return True, None
        case Kind.COMPARE_AND_SET:
            wins = _same(value, given["expected"])
            return not known or operation.result is wins, given["value"] if wins else value
        case Kind.INCREMENT:
            total = (value or 0) + given["by"] if value is None or isinstance(value, int) else None
            return total is not None and (not known or _same(operation.result, total)), total
    raise ValueError(f"{operation.kind} is no operation on a fact")


def _same(one: Any, other: Any) -> bool:
    return bool(one == other)


def _shortest(operations: list[Operation]) -> tuple[Operation, ...]:
    """As few operations as are needed to see that no order explains them."""
    kept = _without_needless(_shortest_beginning(list(enumerate(operations))))
    needed = [(place, each) for place, each in kept if each.is_done]
    seen = [value for _, each in needed for value in (each.result, each.arguments.get("expected")) if value is not None]
    origins = [(place, each) for place, each in kept if not each.is_done and each.arguments.get("value") in seen]
    return tuple(operations[place] for place, _ in sorted(needed + origins, key=lambda each: each[0]))


Placed = list[tuple[int, Operation]]
"""Operations, some of them without their answer, each with the place of the original."""


def _shortest_beginning(placed: Placed) -> Placed:
    """The history up to the first answer that nothing explains."""
    ends = sorted(each.end for _, each in placed if each.is_done)
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _may_be_right(_until(placed, ends[middle])) else (low, middle)
    return _until(placed, ends[low])


def _until(placed: Placed, instant: int) -> Placed:
    begun = [(place, each) for place, each in placed if each.begin <= instant]
    cut = [(place, each if each.end <= instant else _as_unknown(each)) for place, each in begun]
    return [(place, each) for place, each in cut if _says_something(each)]


def _as_unknown(operation: Operation) -> Operation:
    """The same without its answer: then it may have been done at any time, or never, and explains no less."""
    return replace(operation, end=NEVER, outcome=Outcome.UNKNOWN, result=None)


def _without_needless(placed: Placed) -> Placed:
    """What is still wrong without the answers of some operations needs none of these answers."""
    kept = list(placed)
    for place, each in placed:
        if each.is_done:
            weaker = [(other, _as_unknown(it) if other == place else it) for other, it in kept]
            weaker = [(other, it) for other, it in weaker if _says_something(it)]
            if not _may_be_right(weaker):
                kept = weaker
    return kept


def _may_be_right(placed: Placed) -> bool:
    try:
        return is_linearizable([each for _, each in placed], _STATES_OF_AN_EXPLANATION)
    except TooManyStatesError:
        return True
