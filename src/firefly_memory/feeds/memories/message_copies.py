"""Copies of messages (rule R2): what a caller changes afterwards changes nothing that is kept."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from types import NoneType
from typing import Any

from firefly_memory.codec import MAX_DEPTH
from firefly_memory.errors import InvalidEntryError
from firefly_memory.feeds.items import Message

_NEVER_CHANGES = frozenset({str, int, float, bool, bytes, complex, NoneType})
_EQUAL_TO_ITSELF: Any = object.__eq__


def copied_message(message: Mapping[Any, Any], path: str = "message") -> Message:
    """``message`` as a dict of its own, with copies of what it contains.

    A value that cannot be copied, and an object that is equal to nothing but itself, is not copied.
    ``InvalidEntryError`` for a message that is nested too deeply or contains itself.
    """
    return _own(dict(message), path)  # type: ignore[no-any-return]


def copied_value(value: Any, path: str) -> Any:
    """The same for a part of a message."""
    return _own(value, path)


def _own(value: Any, path: str) -> Any:
    try:
        return _copy(value, 0)
    except RecursionError:
        problem = f"is nested deeper than {MAX_DEPTH} levels or the room on Python's stack, or contains itself"
        raise InvalidEntryError(path, problem) from None


def _copy(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in _NEVER_CHANGES:
        return value
    if depth >= MAX_DEPTH:
        raise RecursionError
    if kind is dict:
        copies = {}
        for key, item in value.items():  # no comprehension: on Python 3.11 each has a frame of its own
            copies[key] = _copy(item, depth + 1)
        return copies
    if kind in (list, tuple):
        items = []
        for item in value:
            items.append(_copy(item, depth + 1))  # noqa: PERF401 - see above
        return items if kind is list else tuple(items)
    if kind.__eq__ is _EQUAL_TO_ITSELF:
        return value
    try:
        return deepcopy(value)
    except RecursionError:
        raise
    except Exception:  # noqa: BLE001 - the value's own code decides what it raises
        return value
