"""Cursors of lists by time: the last instant and name of a page, as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import stored_text


class Moment(NamedTuple):
    """A position in an order by time; of equal instants, by name."""

    at: datetime
    name: str
    """In its stored form."""


def as_token(at: datetime, name: str) -> str:
    """A position in an order, as the ``next`` of a page."""
    return f"{at.isoformat()}/{name}"


def from_token(token: str, call: str) -> Moment:
    """The position that :func:`as_token` made a token of; ``call`` is what returns such pages."""
    moment, separator, name = token.partition("/") if isinstance(token, str) else ("", "", "")
    try:
        at = datetime.fromisoformat(moment)
        in_utc = at.astimezone(UTC)
    except (OverflowError, ValueError):
        separator = ""
    if not separator or at.tzinfo is None:
        raise InvalidEntryError("after", f"{token!r} is not the next of a page of {call}")
    return Moment(in_utc, stored_text(name))
