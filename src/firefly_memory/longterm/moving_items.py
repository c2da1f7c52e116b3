"""Facts and people as the lines of an archive have them, and back: each field of a line is checked."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from firefly_memory.clock import instant_of
from firefly_memory.codec import DOCUMENT
from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import (
    new_entry_id,
    original_name,
    original_or_none,
    stored_name,
    stored_text,
)
from firefly_memory.longterm.fact_form import NewFact, checked_confidence, encoded_value, fact_of, version_of
from firefly_memory.longterm.person_form import LONGEST_CONTACT
from firefly_memory.longterm.places import Place, person_place, place_of, stored_space
from firefly_memory.longterm.rows import FactRow, UserRow, VersionRow
from firefly_memory.moving import Item
from firefly_memory.validation import checked_text, checked_whole_number

_MOST = 2**53
"""The largest number that is read: every store can still count up from it."""


def fact_as_json(row: FactRow, language: str) -> Item:
    fact = fact_of(row)
    return {
        "id": original_name(row.id),
        "space": original_name(row.space),
        "scope": fact.scope,
        "scope_id": original_name(row.scope_id),
        "owner": fact.user_id,
        "key": fact.key,
        "value": DOCUMENT.encode(fact.value, "value"),
        "fact_type": fact.fact_type,
        "confidence": fact.confidence,
        "times_confirmed": fact.times_confirmed,
        "times_contradicted": fact.times_contradicted,
        "source_episode_id": fact.source_episode_id,
        "versions": row.versions,
        "access_count": fact.access_count,
        "last_accessed": _text_of(fact.last_accessed),
        "valid_from": fact.valid_from.isoformat(),
        "created_at": fact.created_at.isoformat(),
        "updated_at": fact.updated_at.isoformat(),
        "language": language,
    }


def fact_from_json(item: Item, language: str) -> FactRow:
    place, owner = _place(item), _name_or_none(item, "owner")
    if place.scope == "user" and owner != place.scope_id:
        raise InvalidEntryError("owner", f"of a fact in the scope 'user' is the user, not {item['owner']!r}")
    new = NewFact(
        place=place,
        key=stored_name("key", item["key"]),
        value=encoded_value(DOCUMENT.decode(item["value"])),
        fact_type=stored_name("fact_type", item["fact_type"]),
        confidence=checked_confidence(item["confidence"]),
        source_episode_id=_name_or_none(item, "source_episode_id"),
        owner=owner,
        now=instant_of(item["valid_from"]),
    )
    return new.row(language)._replace(
        id=stored_name("id", item["id"]),
        times_confirmed=_number(item, "times_confirmed"),
        times_contradicted=_number(item, "times_contradicted"),
        versions=_number(item, "versions"),
        written_by=new_entry_id(),
        access_count=_number(item, "access_count"),
        last_accessed=_instant_or_none(item, "last_accessed"),
        created_at=instant_of(item["created_at"]),
        newest=instant_of(item["updated_at"]),
    )


def id_of_fact(item: Item) -> str:
    """The stored id of the fact whose versions are read."""
    return stored_text(item["id"])


def version_as_json(fact: Item, row: VersionRow) -> Item:
    version = version_of(row)
    return {
        "fact_id": fact["id"],
        "space": fact["space"],
        "number": version.number,
        "owner": original_or_none(row.owner),
        "value": DOCUMENT.encode(version.value, "value"),
        "confidence": version.confidence,
        "source_episode_id": version.source_episode_id,
        "valid_from": version.valid_from.isoformat(),
        "superseded_at": version.superseded_at.isoformat(),
    }


def version_from_json(item: Item) -> VersionRow:
    return VersionRow(
        fact_id=stored_name("fact_id", item["fact_id"]),
        number=_number(item, "number"),
        value=encoded_value(DOCUMENT.decode(item["value"])),
        confidence=checked_confidence(item["confidence"]),
        source_episode_id=_name_or_none(item, "source_episode_id"),
        owner=_name_or_none(item, "owner"),
        valid_from=instant_of(item["valid_from"]),
        superseded_at=instant_of(item["superseded_at"]),
    )


def person_as_json(row: UserRow, root: UserRow | None) -> Item:
    """``root`` is the person for whom it stands, if that is another one."""
    return {
        "id": original_name(row.id),
        "space": original_name(row.space),
        "canonical_id": original_name(row.canonical_id),
        "telegram_id": original_or_none(row.telegram_id),
        "email": original_or_none(row.email),
        "display_name": original_or_none(row.display_name),
        "total_conversations": row.total_conversations,
        "last_conversation_at": _text_of(row.last_conversation_at),
        "merged_into": None if root is None else original_name(root.canonical_id),
        "merged_into_id": None if root is None else original_name(root.id),
        "first_seen": row.first_seen.isoformat(),
        "updated_at": row.updated_at.isoformat(),
    }


def person_from_json(item: Item) -> UserRow:
    """The person, who stands for nobody else yet."""
    space, canonical_id = stored_space(item["space"]), stored_name("canonical_id", item["canonical_id"])
    word = person_place(space, canonical_id).word
    return UserRow(
        id=stored_name("id", item["id"]),
        space=space,
        canonical_id=canonical_id,
        word=word,
        telegram_id=_contact(item, "telegram_id"),
        email=_contact(item, "email"),
        display_name=_name_or_none(item, "display_name"),
        total_conversations=_number(item, "total_conversations"),
        last_conversation_at=_instant_or_none(item, "last_conversation_at"),
        merged_into_id=None,
        stands_for=word,
        written_by=new_entry_id(),
        first_seen=instant_of(item["first_seen"]),
        updated_at=instant_of(item["updated_at"]),
    )


def root_word_of(item: Item) -> str:
    """The word of the person into whom this one was merged."""
    return person_place(stored_space(item["space"]), stored_name("merged_into", item["merged_into"])).word


def _place(item: Item) -> Place:
    scope, scope_id = item["scope"], checked_text("scope_id", item["scope_id"])
    if scope == "global" and scope_id:
        raise InvalidEntryError("scope_id", "of the scope 'global' is empty")
    return place_of(stored_space(item["space"]), scope, {f"{scope}_id": scope_id})


def _contact(item: Item, name: str) -> str | None:
    contact = _name_or_none(item, name)
    if contact is not None and len(item[name]) > LONGEST_CONTACT:
        raise InvalidEntryError(name, f"is {len(item[name])} characters long; at most {LONGEST_CONTACT} are allowed")
    return contact


def _name_or_none(item: Item, name: str) -> str | None:
    value: Any = item[name]
    return None if value is None else stored_name(name, value)


def _number(item: Item, name: str) -> int:
    number = checked_whole_number(name, item[name])
    if number > _MOST:
        raise InvalidEntryError(name, f"is {number}; at most {_MOST} is allowed")
    return number


def _instant_or_none(item: Item, name: str) -> datetime | None:
    value: Any = item[name]
    return None if value is None else instant_of(value)


def _text_of(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
