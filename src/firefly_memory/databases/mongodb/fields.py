"""Fields of documents: how they are written and, where somebody may have changed them, read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

Document = dict[str, Any]

_LARGEST_EXACT = 2**53  # beyond it, doubles leave out integers


def text(document: Mapping[str, Any], name: str) -> str:
    """The text in a field; ``TypeError`` if it holds something else."""
    value = document[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}, not text")
    return value


def whole(document: Mapping[str, Any], name: str) -> int:
    """The count in a field, which shells may have written as a double; ``TypeError`` if it holds something else."""
    value = document[name]
    is_exact = isinstance(value, float) and value.is_integer() and value <= _LARGEST_EXACT
    if isinstance(value, bool) or not (isinstance(value, int) or is_exact) or value < 0:
        raise TypeError(f"{name} is {value!r}, not a count")
    return int(value)


def text_or_none(document: Mapping[str, Any], name: str) -> str | None:
    return None if document[name] is None else text(document, name)


def split(moment: datetime | None) -> tuple[Any, int]:
    """A date as MongoDB keeps it, and the microseconds it would lose."""
    if moment is None:
        return None, 0
    microseconds = moment.microsecond % 1000
    return moment - timedelta(microseconds=microseconds), microseconds
