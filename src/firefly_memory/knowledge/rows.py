"""Chunks and their rows: what is stored of a chunk, and what it was made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from hashlib import blake2b
from typing import Any

from firefly_memory.codec import DAMAGE, TEXT
from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import original_name, original_or_none, stored_name, stored_text
from firefly_memory.knowledge.log import ChunkRow, damaged_chunk
from firefly_memory.knowledge.types import Chunk, StoredChunk
from firefly_memory.search.index import indexed
from firefly_memory.search.neighbours import REACH
from firefly_memory.search.scopes import scope_word
from firefly_memory.validation import checked_text, checked_whole_number

LONGEST_TEXT = 4_000_000
"""Characters of a chunk. MongoDB's limit of 16 MB for a document, with the words beside the text, may come sooner."""

LARGEST_POSITION = 2**63 - 1 - REACH
"""So that a neighbour's position is a number for every database, too."""


def scope_of(space: str, collection: str, owner: str | None) -> str:
    """The word of the scope of a person's chunks in a collection, or of nobody's. All in their stored form."""
    return scope_word(space, collection, *([] if owner is None else [owner]))


def stored_space(space: Any) -> str:
    """The stored form of a tenant, which may be empty."""
    return "" if checked_text("space", space) == "" else stored_name("space", space)


def stored_owner(owner: Any) -> str | None:
    """The stored form of a person's id."""
    return None if owner is None else stored_name("owner", owner)


def source_text(source: Any) -> str | None:
    """A source as it is stored."""
    return None if source is None else str(TEXT.encode(source, "source"))


def chunk_id(made_of: Sequence[Any]) -> str:
    """The id of a chunk: the same for the same text of the same source, person, time and place."""
    return blake2b(json.dumps(made_of).encode(), digest_size=16).hexdigest()


def row_of(
    chunk: Chunk,
    *,
    space: str,
    collection: str,
    owner: str | None,
    source: str | None,
    position: int,
    created_at: datetime,
    language: str,
) -> ChunkRow:
    """The row of a chunk. ``space``, ``collection``, ``owner`` and ``source`` are in their stored form already."""
    text = _text(chunk.text)
    said_at = _said_at(chunk.at)
    group = None if chunk.group is None else stored_name("group", chunk.group)
    place = 0 if group is None else position
    scope = scope_of(space, collection, owner)
    who = None if chunk.who in (None, "") else stored_name("who", chunk.who)
    fields = indexed(scope, text, language, who=chunk.who or None, at=chunk.at, group_id=chunk.group, position=place)
    stored = stored_text(text)
    return ChunkRow(
        id=chunk_id([space, collection, owner, source, who, said_at, group, place, stored]),
        space=space,
        collection=collection,
        owner=owner,
        source=source,
        text=stored,
        said_at=said_at,
        newest=created_at if chunk.at is None else _instant(chunk.at),
        created_at=created_at,
        scope=fields.scope,
        who=who,
        group_id=fields.group_id,
        position=fields.position,
        searchable=fields.searchable,
        words=tuple(fields.words),
    )


def stored_chunk(row: ChunkRow) -> StoredChunk:
    """The chunk that a row stands for, or ``CorruptDataError``."""
    try:
        return StoredChunk(
            id=row.id,
            collection=original_name(row.collection),
            text=original_name(row.text),
            source=None if row.source is None else TEXT.decode(row.source),
            owner=original_or_none(row.owner),
            who=original_or_none(row.who),
            at=None if row.said_at is None else said_at(row.said_at),
            group=original_or_none(row.group_id),
            position=row.position,
            created_at=row.created_at,
        )
    except DAMAGE as exc:
        raise damaged_chunk(row.id, exc) from exc


def said_at(text: str) -> date:
    """The date, or the instant, that :class:`ChunkRow` has as text."""
    return datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)


def _text(text: Any) -> str:
    found = str.__str__(checked_text("text", text))
    if not found.strip():
        raise InvalidEntryError("text", "must not be empty")
    if len(found) > LONGEST_TEXT:
        raise InvalidEntryError("text", f"is {len(found):,} characters long; at most {LONGEST_TEXT:,} are allowed")
    return found


def _said_at(at: Any) -> str | None:
    if at is None:
        return None
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise InvalidEntryError("at", "must have a time zone, or be a date")
        try:
            return at.astimezone(UTC).isoformat(timespec="microseconds")
        except OverflowError as exc:
            raise InvalidEntryError("at", "is before the year 1 or after 9999 in UTC") from exc
    if not isinstance(at, date):
        raise InvalidEntryError("at", f"must be a date or a datetime, not {type(at).__name__}")
    return at.isoformat()


def _instant(at: date) -> datetime:
    return at.astimezone(UTC) if isinstance(at, datetime) else datetime.combine(at, time(), UTC)


def checked_position(position: Any) -> int:
    """The number of a chunk in its group."""
    number = checked_whole_number("position", position)
    if number > LARGEST_POSITION:
        raise InvalidEntryError("position", f"must be at most {LARGEST_POSITION:,}")
    return number
