"""Cursors of the list of conversations: places in one of its orders."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

from firefly_memory.conversations.log import Order
from firefly_memory.conversations.types import ConversationInfo
from firefly_memory.cursors import as_token, from_token
from firefly_memory.entries.record import Position
from firefly_memory.errors import InvalidEntryError
from firefly_memory.reprs import shown

_CALL = "list_conversations()"
_UPDATED = "updated "
"""Begins the cursors of that order, so that none is taken for a place in the other."""


def cursor_of(last: ConversationInfo, order: Order) -> str:
    """The cursor of the page after ``last``."""
    return cursor_at(position_of(last, order), order)


def position_of(conversation: ConversationInfo, order: Order) -> Position:
    """Its place in the order."""
    moment = conversation.created_at if order == "created" else conversation.updated_at
    return Position(moment, conversation.conversation_id)


def cursor_at(position: tuple[datetime, str], order: Order) -> str:
    """The cursor of the page after a place."""
    return ("" if order == "created" else _UPDATED) + as_token(*position)


def position_in_list(after: str | None, order: Order) -> Position | None:
    """The place of a cursor; ``InvalidEntryError`` if it is no cursor of this order."""
    if order not in get_args(Order):
        raise InvalidEntryError("order", f"must be 'created' or 'updated', not {shown(order)}")
    if after is None:
        return None
    if order == "created":
        return Position(*from_token(after, _CALL))
    if not isinstance(after, str) or not after.startswith(_UPDATED):
        raise InvalidEntryError("after", f"{shown(after)} is not the next of a page of {_CALL} with order='updated'")
    return Position(*from_token(after.removeprefix(_UPDATED), _CALL))
