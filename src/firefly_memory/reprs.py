"""``repr`` that never fails, whatever it is to show."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def even_half_built(show: Callable[[T], str]) -> Callable[[T], str]:
    """A ``__repr__`` that also works before the constructor has set what it shows: debuggers and tracebacks show
    objects whose constructor has failed."""

    @wraps(show)
    def shown(self: T) -> str:
        try:
            return show(self)
        except AttributeError:
            return f"<{type(self).__name__}, not built>"

    return shown


def shown(value: Any) -> str:
    """``repr(value)`` for a message, or, for an integer of more digits than Python prints, its type."""
    try:
        return repr(value)
    except ValueError:
        name = type(value).__name__
        return f"{'an' if name[0] in 'aeiou' else 'a'} {name} too long to show"
