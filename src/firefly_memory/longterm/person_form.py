"""People as callers name them, as they are stored, and as callers get them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from firefly_memory.codec import damaged
from firefly_memory.errors import CorruptDataError, InvalidEntryError
from firefly_memory.identifiers import new_entry_id, original_name, original_or_none, stored_name
from firefly_memory.longterm.places import person_place
from firefly_memory.longterm.rows import UserRow
from firefly_memory.longterm.types import MemoryUser
from firefly_memory.validation import checked_text

LONGEST_CONTACT = 320
"""Characters of a Telegram id or an e-mail address, so that an index can hold it."""

_CONTACTS = {"telegram": "telegram_id", "email": "email"}
"""The channels whose ids have a field of their own."""


def new_user_row(space: str, channel: Any, channel_id: Any, name: Any, now: datetime) -> UserRow:
    """A person whom a channel names. ``InvalidEntryError`` for a name that would be another person's as well."""
    stored_name("channel", channel)
    if ":" in channel:
        raise InvalidEntryError("channel", f"must not have a colon, for it ends at the first one: {channel!r}")
    contact = stored_name("id", channel_id)
    if channel in _CONTACTS and len(channel_id) > LONGEST_CONTACT:
        raise InvalidEntryError("id", f"is {len(channel_id)} characters long; at most {LONGEST_CONTACT} are allowed")
    canonical_id = stored_name("canonical_id", f"{channel}:{channel_id}")
    word = person_place(space, canonical_id).word
    contacts: dict[str, Any] = dict.fromkeys(_CONTACTS.values())
    if channel in _CONTACTS:
        contacts[_CONTACTS[channel]] = contact
    name_shown = None if name is None or not checked_text("name", name).strip() else stored_name("name", name)
    new_id = new_entry_id()
    return UserRow(
        id=new_id,
        space=space,
        canonical_id=canonical_id,
        word=word,
        display_name=name_shown,
        total_conversations=0,
        last_conversation_at=None,
        merged_into_id=None,
        stands_for=word,
        written_by=new_id,
        first_seen=now,
        updated_at=now,
        **contacts,
    )


def user_of(row: UserRow, preferences: Mapping[str, Any]) -> MemoryUser:
    """The person whom a row stands for."""
    return MemoryUser(
        id=row.id,
        canonical_id=original_name(row.canonical_id),
        telegram_id=original_or_none(row.telegram_id),
        email=original_or_none(row.email),
        display_name=original_or_none(row.display_name),
        preferences_cache=dict(preferences),
        total_conversations=row.total_conversations,
        last_conversation_at=row.last_conversation_at,
        first_seen=row.first_seen,
        merged_into_id=row.merged_into_id,
    )


_TEXTS = ("id", "space", "canonical_id", "word", "stands_for", "written_by")
_TEXTS_OR_NONE = ("telegram_id", "email", "display_name", "merged_into_id")


def checked_user(row: UserRow) -> UserRow:
    """``row``, or ``CorruptDataError`` for a field of another type. For backends that do not check types themselves."""
    values = row._asdict()
    wrong = [name for name in _TEXTS if not isinstance(values[name], str)]
    wrong += [name for name in _TEXTS_OR_NONE if not isinstance(values[name], (str, type(None)))]
    if wrong or type(row.total_conversations) is not int:
        raise damaged_user(row.id, TypeError(f"{', '.join(wrong) or 'total_conversations'} has another type"))
    return row


def damaged_user(user_id: object, exc: Exception) -> CorruptDataError:
    """The error for a damaged person."""
    return damaged("reading a person", f"person {user_id!r}", exc)
