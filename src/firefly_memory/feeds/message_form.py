"""A message as callers give it, as it is stored, and as callers get it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firefly_memory import clock
from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.errors import CorruptDataError, InvalidEntryError
from firefly_memory.feeds.constants import CONVERSATION_TYPES, GLOBAL_TYPES
from firefly_memory.feeds.items import FeedItem, Message
from firefly_memory.feeds.log import FeedLog, NewMessage, StoredMessage
from firefly_memory.identifiers import new_entry_id, original_name, stored_name


def is_conversation(message: Mapping[str, Any]) -> bool:
    """Whether people or the assistant say it to each other."""
    kind = message.get("type")
    return isinstance(kind, str) and kind in CONVERSATION_TYPES


def is_global(message: Mapping[str, Any]) -> bool:
    """Whether it is for every agent."""
    kind = message.get("type")
    return message.get("is_global") is True or (isinstance(kind, str) and kind in GLOBAL_TYPES)


class MessageForm:
    """Writes and reads the messages of one mode of a backend."""

    def __init__(self, log: FeedLog) -> None:
        self._log = log

    def new(self, message: Message, path: str = "message") -> NewMessage:
        """A message to append; ``InvalidEntryError`` for what cannot be stored."""
        if not isinstance(message, Mapping):
            raise InvalidEntryError(path, f"must be a dict, not {type(message).__name__}")
        encoded = self._log.form.encode(dict(message), path)
        return NewMessage(
            append_id=new_entry_id(),
            agent_key=_agent_key(message, path),
            is_conversation=is_conversation(message),
            is_global=is_global(message),
            message=encoded,
            created_at=clock.now(),
            size=len(encoded),
        )

    def message(self, location: str, stored: StoredMessage) -> Message:
        """A message as callers get it; ``CorruptDataError`` if it is damaged."""
        try:
            return self._decoded(stored)
        except DAMAGE as exc:
            raise _damaged(location, stored, exc) from exc

    def item(self, location: str, stored: StoredMessage) -> FeedItem:
        """The same with its number."""
        try:
            return FeedItem(stored.number, self._decoded(stored), self._log.read_instant(stored.created_at))
        except DAMAGE as exc:
            raise _damaged(location, stored, exc) from exc

    def _decoded(self, stored: StoredMessage) -> Message:
        message = self._log.form.decode(stored.message)
        if type(message) is not dict:
            raise TypeError(f"a message is an object, and this is {type(message).__name__}")
        return message


def _damaged(location: str, stored: StoredMessage, exc: Exception) -> CorruptDataError:
    where = f"message {stored.number} of feed {original_name(location)!r}"
    return damaged("reading a feed", where, exc)


def _agent_key(message: Message, path: str) -> str | None:
    agent_key = message.get("agent_key")
    return None if agent_key is None else stored_name(f"{path}.agent_key", agent_key)
