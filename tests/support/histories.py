"""Histories that no store made: by hand, or by a model that does one operation at a time between begin and end."""

from __future__ import annotations

import random
from typing import Any

from firefly_memory.testing.histories.operation import NEVER, Kind, Operation, Outcome

TALK, FACT = "talk", "fact"


def done(kind: Kind, span: tuple[int, int], result: Any = None, **arguments: Any) -> Operation:
    """An operation that was acknowledged."""
    return _operation(kind, span, outcome=Outcome.DONE, result=result, arguments=arguments)


def failed(kind: Kind, span: tuple[int, int], turns_seen: int | None = None, **arguments: Any) -> Operation:
    """An operation that was refused by a clear error."""
    return _operation(kind, span, outcome=Outcome.FAILED, turns_seen=turns_seen, arguments=arguments)


def unknown(kind: Kind, begin: int, **arguments: Any) -> Operation:
    """An operation of a process that was killed."""
    return _operation(kind, (begin, NEVER), arguments=arguments)


def overdue(kind: Kind, span: tuple[int, int], **arguments: Any) -> Operation:
    """An operation that ended with ``OutcomeUnknownError``: the server may do it later."""
    return _operation(kind, span, arguments=arguments)


def _operation(kind: Kind, span: tuple[int, int], **fields: Any) -> Operation:
    target = TALK if kind in (Kind.APPEND, Kind.READ) else FACT
    return Operation(worker="somebody", kind=kind, target=target, begin=span[0], end=span[1], **fields)


def append(text: str, number: int, *span: int, **options: Any) -> Operation:
    return done(Kind.APPEND, (span[0], span[1]), number, text=text, **options)


def read(texts: str, *span: int, first: int | None = 0, total: int | None = -1) -> Operation:
    """A read that gives a turn for each word of ``texts``; to the end of the conversation, unless ``total`` is given."""
    turns = [(number, text) for number, text in enumerate(texts.split(), first or 0)]
    result = {"turns": turns, "total": (first or 0) + len(turns) if total == -1 else total}
    return done(Kind.READ, (span[0], span[1]), result, first=first)


def get(value: Any, *span: int) -> Operation:
    return done(Kind.GET, (span[0], span[1]), value)


def put(value: Any, *span: int) -> Operation:
    return done(Kind.SET, (span[0], span[1]), value=value)


def won(expected: Any, value: Any, *span: int) -> Operation:
    """A call of ``compare_and_set`` that found what it expected."""
    return done(Kind.COMPARE_AND_SET, (span[0], span[1]), result=True, expected=expected, value=value)


def lost(expected: Any, value: Any, *span: int) -> Operation:
    """A call of ``compare_and_set`` that found something else."""
    return done(Kind.COMPARE_AND_SET, (span[0], span[1]), result=False, expected=expected, value=value)


def add(total: int, *span: int) -> Operation:
    return done(Kind.INCREMENT, (span[0], span[1]), total, by=1)


def simulated(seed: int, count: int = 60) -> list[Operation]:
    """The history of a store that is right: each operation is done at an instant between its begin and its end."""
    chance = random.Random(seed)
    turns: list[str] = []
    value: Any = None
    history: list[Operation] = []
    for number in range(count):
        instant = 1000 * (number + 1)
        span = (instant - chance.randint(1, 1500), instant + chance.randint(1, 1500))
        kind = chance.choice(list(Kind))
        given, result = _arguments(chance, kind, number, value), None
        outcome = chance.choice([*[Outcome.DONE] * 8, Outcome.FAILED, Outcome.UNKNOWN])
        if outcome is Outcome.DONE or (outcome is Outcome.UNKNOWN and chance.random() < 0.5):
            value, result = _do(kind, given, turns, value)
        if outcome is not Outcome.DONE:
            result = None
        end = NEVER if outcome is Outcome.UNKNOWN else span[1]
        history.append(_operation(kind, (span[0], end), outcome=outcome, result=result, arguments=given))
    after = 1000 * count + 5000
    return [*history, read(" ".join(turns), after, after + 1), get(value, after, after + 1)]


def _arguments(chance: random.Random, kind: Kind, number: int, value: Any) -> dict[str, Any]:
    expected = chance.choice([value, None, number])
    arguments: dict[Kind, dict[str, Any]] = {
        Kind.APPEND: {"text": f"t{number}"},
        Kind.READ: {"first": 0},
        Kind.SET: {"value": 1000 * number},
        Kind.COMPARE_AND_SET: {"expected": expected, "value": 1000 * number},
        Kind.INCREMENT: {"by": 1},
    }
    return arguments.get(kind, {})


def _do(kind: Kind, given: dict[str, Any], turns: list[str], value: Any) -> tuple[Any, Any]:
    """The value of the fact after it, and the result."""
    match kind:
        case Kind.APPEND:
            turns.append(given["text"])
            return value, len(turns) - 1
        case Kind.READ:
            return value, {"turns": list(enumerate(turns)), "total": len(turns)}
        case Kind.SET:
            return given["value"], None
        case Kind.DELETE:
            return None, None
        case Kind.COMPARE_AND_SET:
            return (given["value"], True) if value == given["expected"] else (value, False)
        case Kind.INCREMENT:
            return (value or 0) + 1, (value or 0) + 1
        case Kind.GET:
            return value, value
