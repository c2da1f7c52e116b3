"""Cursors of lists of facts, as text."""

from __future__ import annotations

from datetime import UTC, datetime

from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import stored_text
from firefly_memory.longterm.rows import FactPosition


def position_token(position: FactPosition) -> str:
    """A position in a list, as the ``next`` of a page."""
    return f"{position.confidence!r}/{position.newest.isoformat()}/{position.id}"


def position_of(token: str, call: str) -> FactPosition:
    """The position that :func:`position_token` made a token of; ``call`` is what returns such pages."""
    try:
        confidence, moment, name = token.split("/", 2)
        position = FactPosition(float(confidence), datetime.fromisoformat(moment), stored_text(name))
        newest = position.newest.astimezone(UTC)
    except (AttributeError, OverflowError, TypeError, ValueError) as exc:
        raise _another(token, call) from exc
    if position.newest.tzinfo is None or not 0.0 <= position.confidence <= 1.0:
        raise _another(token, call)
    return position._replace(newest=newest)


def _another(token: object, call: str) -> InvalidEntryError:
    return InvalidEntryError("after", f"{token!r} is not the next of a page of {call}")
