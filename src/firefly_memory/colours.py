"""Sync and async, written once: how a blocking caller runs a coroutine that never suspends."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine`` to its end here and now: no event loop, no thread.

    Only for coroutines made of a store's ``blocking`` view, whose methods never suspend.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking call tried to suspend: it awaited something that is not a blocking view")
