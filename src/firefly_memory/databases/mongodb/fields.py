"""Fields of documents: how they are written and, where somebody may have changed them, read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import bson

from firefly_memory.errors import InvalidEntryError

Document = dict[str, Any]

_MOST_BYTES = 16 * 1024 * 1024
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


def dated(name: str, moment: datetime | None) -> Document:
    """The two fields of an instant: the date, and the microseconds it would lose."""
    date, microseconds = split(moment)
    return {name: date, f"{name}_us": microseconds}


def instant(document: Mapping[str, Any], name: str) -> datetime:
    """The instant in the fields of :func:`dated`; ``TypeError`` if they hold something else."""
    date = document[name]
    if not isinstance(date, datetime):
        raise TypeError(f"{name} is {type(date).__name__}, not a date")
    return (date + timedelta(microseconds=whole(document, f"{name}_us"))).astimezone(UTC)


def instant_or_none(document: Mapping[str, Any], name: str) -> datetime | None:
    return None if document[name] is None else instant(document, name)


def texts(document: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The texts in a field; ``TypeError`` if it holds something else."""
    values = document[name]
    if not isinstance(values, list):
        raise TypeError(f"{name} is {type(values).__name__}, not a list")
    "".join(values)  # they are texts, or this fails
    return tuple(values)


def check_size(what: str, document: Document) -> None:
    """``InvalidEntryError`` for a document that is too large, before anything is written."""
    size = len(bson.encode(document))
    if size > _MOST_BYTES:
        raise InvalidEntryError(what, f"is larger than the 16 MB MongoDB allows for a document ({size:,} bytes)")
