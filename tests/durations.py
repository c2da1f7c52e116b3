"""How long something takes, on a machine that may be busy."""

from __future__ import annotations

from collections.abc import Callable

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
