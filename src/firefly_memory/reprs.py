"""``repr`` of objects that may be half-built: debuggers and tracebacks show those whose constructor has failed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

T = TypeVar("T")


def even_half_built(show: Callable[[T], str]) -> Callable[[T], str]:
    """A ``__repr__`` that also works before the constructor has set what it shows."""

    @wraps(show)
    def shown(self: T) -> str:
        try:
            return show(self)
        except AttributeError:
            return f"<{type(self).__name__}, not built>"

    return shown
