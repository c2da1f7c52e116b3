"""How long something takes, on a machine that may be busy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from firefly_memory import StoreTimeoutError

T = TypeVar("T")

_TRIES = 5


def quickest(measure: Callable[[], float], *, enough: float) -> float:
    """The shortest of up to five measurements, up to the first that is short ``enough``.

    A busy machine makes a measurement longer, never shorter: so one that is short shows what the code waits for.
    """
    shortest = float("inf")
    for _ in range(_TRIES):
        shortest = min(shortest, measure())
        if shortest < enough:
            break
    return shortest


def in_the_end(call: Callable[[], T]) -> T:
    """What ``call`` returns, of a store whose time-out is short for the sake of the test.

    A busy machine may exceed it now and then; what has been lost for good exceeds it each time.
    """
    for _ in range(_TRIES - 1):
        try:
            return call()
        except StoreTimeoutError:
            continue
    return call()
