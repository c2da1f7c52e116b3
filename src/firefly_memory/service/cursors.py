"""Cursors: where a page ended, as opaque text.

A cursor belongs to one kind, one order and one selection. It holds the place of the last row, and a checksum over all
of this. The checksum finds mistakes, and is no secret: whoever makes up a cursor can only begin at another place of the
rows that he may list anyway, for the selection is never read from a cursor.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from firefly_memory.clock import instant_of
from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import MAX_LENGTH
from firefly_memory.looking import Position, Resource

_LONGEST = 16_384  # two names of 512 characters, each of which takes at most 12 in JSON, in base64
_LARGEST = 2**31 - 2


def as_cursor(resource: Resource, order: str, where: Mapping[str, Any], position: Position) -> str:
    """The cursor for the rows after ``position``."""
    place = [each.isoformat() if isinstance(each, datetime) else each for each in position]
    text = json.dumps([_checksum(resource, order, where, place), *place])
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def from_cursor(resource: Resource, order: str, where: Mapping[str, Any], cursor: str) -> Position:
    """The place that :func:`as_cursor` was given; ``InvalidEntryError`` for any other text."""
    try:
        checksum, *place = _read(cursor)
        _check_checksum(checksum, _checksum(resource, order, where, place))
        return tuple(_value(kind, each) for kind, each in zip(resource.orders[order], place, strict=True))
    except (ValueError, TypeError, OverflowError, RecursionError) as exc:
        problem = f"is no cursor of {resource.kind} in this order and selection; begin again without it"
        raise InvalidEntryError("after", problem) from exc


def _check_checksum(given: Any, right: str) -> None:
    if given != right:
        raise ValueError("its checksum is another one")


def _read(cursor: str) -> list[Any]:
    if not isinstance(cursor, str) or len(cursor) > _LONGEST or not cursor.isascii():
        raise ValueError("it is no cursor at all")
    found = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    if not isinstance(found, list):
        raise TypeError("it is no list")
    return found


def _value(kind: type, value: Any) -> Any:
    if kind is datetime:
        return instant_of(value).astimezone(UTC)
    if type(value) is not kind:
        raise TypeError(f"it has {type(value).__name__} in place of {kind.__name__}")
    if isinstance(value, int) and not 0 <= value <= _LARGEST:
        raise ValueError("its number is beyond those of all rows")
    if isinstance(value, str) and len(value) > MAX_LENGTH:
        raise ValueError("its text is longer than any name")
    return value


def _checksum(resource: Resource, order: str, where: Mapping[str, Any], place: list[Any]) -> str:
    text = json.dumps([resource.kind, order, sorted((name, str(value)) for name, value in where.items()), place])
    return sha256(text.encode()).hexdigest()[:16]
