"""Facts as callers give them, as they are stored, and as callers get them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from types import NoneType
from typing import Any, NamedTuple

from firefly_memory.codec import DAMAGE, TEXT, damaged
from firefly_memory.errors import CorruptDataError, InvalidEntryError
from firefly_memory.identifiers import new_entry_id, original_name, original_or_none
from firefly_memory.longterm.places import Place
from firefly_memory.longterm.rows import FactRow, VersionRow
from firefly_memory.longterm.types import SCOPES, FactVersion, MemoryFact, Scope
from firefly_memory.reprs import shown
from firefly_memory.search.index import Indexed, indexed
from firefly_memory.search.searchable import searchable, value_text
from firefly_memory.validation import checked_number

LONGEST_VALUE = 4_000_000
"""Characters of a value as JSON. MongoDB's limit of 16 MB for a document, with the words beside it, may come sooner."""


class NewFact(NamedTuple):
    """A fact that is to be stored. All texts are in their stored form."""

    place: Place
    key: str
    value: str
    """JSON text."""
    fact_type: str
    confidence: float
    source_episode_id: str | None
    owner: str | None
    now: datetime

    def row(self, language: str) -> FactRow:
        """As it is stored if there is none."""
        word = self.place.word
        fields = indexed_fact(word, original_name(self.key), TEXT.decode(self.value), language)
        name = new_entry_id()
        return FactRow(
            id=name,
            space=self.place.space,
            fact_scope=self.place.scope,
            scope_id=self.place.scope_id,
            key=self.key,
            value=self.value,
            fact_type=self.fact_type,
            confidence=self.confidence,
            times_confirmed=1,
            times_contradicted=0,
            source_episode_id=self.source_episode_id,
            owner=self.owner,
            versions=0,
            written_by=name,
            access_count=0,
            last_accessed=None,
            valid_from=self.now,
            created_at=self.now,
            newest=self.now,
            **{**fields._asdict(), "words": tuple(fields.words)},
        )


def encoded_value(value: Any) -> str:
    """A value as it is stored; ``InvalidEntryError`` for what JSON lacks."""
    text = str(TEXT.encode(value, "value"))
    if len(text) > LONGEST_VALUE:
        raise InvalidEntryError("value", f"is {len(text):,} characters long; at most {LONGEST_VALUE:,} are allowed")
    return text


def checked_confidence(confidence: Any, name: str = "confidence") -> float:
    """A number from 0 to 1. Minus zero is zero: some databases have no other."""
    number = checked_number(name, confidence)
    if not 0 <= number <= 1:
        raise InvalidEntryError(name, f"must be from 0.0 to 1.0, not {shown(confidence)}")
    return float(number) + 0.0


def indexed_fact(word: str, key: str, value: Any, language: str) -> Indexed:
    """What a fact is found by. A pattern meets its key or its value, so these are lines of their own."""
    fields = indexed(word, fact_text(searchable(key), value), language)
    return fields._replace(searchable=f"{searchable(key)}\n{searchable(value_text(value))}")


def fact_text(key: str, value: Any) -> str:
    """A fact as people read it and as it is embedded."""
    return f"{key}: {value_text(value)}"


def value_of(row: FactRow) -> Any:
    """The value of a fact; ``CorruptDataError`` if it is damaged."""
    try:
        return TEXT.decode(row.value)
    except DAMAGE as exc:
        raise damaged_fact(row.id, exc) from exc


def fact_of(row: FactRow) -> MemoryFact:
    """The fact that a row stands for, or ``CorruptDataError``."""
    fact: Any = _FactInTheMaking()
    scope, scope_id = row.fact_scope, row.scope_id
    try:
        fact.id = row.id
        fact.key = original_name(row.key)
        fact.value = TEXT.decode(row.value)
        fact.fact_type = original_name(row.fact_type)
        fact.scope = _SCOPES[scope]
        fact.session_id = original_name(scope_id) if scope == "session" else None
        fact.user_id = original_or_none(row.owner)
        fact.agent_id = original_name(scope_id) if scope == "agent" else None
        fact.confidence = row.confidence
        fact.times_confirmed = row.times_confirmed
        fact.times_contradicted = row.times_contradicted
        fact.source_episode_id = original_or_none(row.source_episode_id)
        fact.access_count = row.access_count
        fact.last_accessed = row.last_accessed
        fact.valid_from = row.valid_from
        fact.created_at = row.created_at
        fact.updated_at = row.newest
    except DAMAGE as exc:
        raise damaged_fact(row.id, exc) from exc
    fact.__class__ = MemoryFact
    made: MemoryFact = fact
    return made


class _FactInTheMaking:
    """Has the fields of a fact, and becomes one. To make a frozen dataclass by its call takes ten times as long."""

    __slots__ = tuple(each.name for each in fields(MemoryFact))


_SCOPES: Mapping[str, Scope] = {scope: scope for scope in SCOPES}


def version_of(row: VersionRow) -> FactVersion:
    """The version that a row stands for, or ``CorruptDataError``."""
    try:
        return FactVersion(
            number=row.number,
            value=TEXT.decode(row.value),
            confidence=row.confidence,
            source_episode_id=original_or_none(row.source_episode_id),
            valid_from=row.valid_from,
            superseded_at=row.superseded_at,
        )
    except DAMAGE as exc:
        raise damaged("reading a fact", f"version {row.number} of fact {row.fact_id!r}", exc) from exc


_TEXTS_OR_NONE = ("source_episode_id", "owner", "who", "group_id")
_NUMBERS = ("times_confirmed", "times_contradicted", "versions", "access_count", "position")
_CHECKED_ELSEWHERE = ("last_accessed", "valid_from", "created_at", "newest", "words")


def _type_of(name: str) -> Any:
    if name in _CHECKED_ELSEWHERE:
        return object
    if name == "confidence":
        return float
    return int if name in _NUMBERS else (str, NoneType) if name in _TEXTS_OR_NONE else str


_TYPES = {name: _type_of(name) for name in FactRow._fields}
_TYPES_IN_ORDER = tuple(_TYPES.values())


def checked_row(row: FactRow) -> FactRow:
    """``row``, or ``CorruptDataError`` for a field of another type. For backends that do not check types themselves."""
    if type(row.confidence) is int:
        row = row._replace(confidence=float(row.confidence))
    if all(map(isinstance, row, _TYPES_IN_ORDER)) and 0.0 <= row.confidence <= 1.0:
        return row
    wrong = [name for name, value in row._asdict().items() if not isinstance(value, _TYPES[name])]
    raise damaged_fact(row.id, TypeError(f"{', '.join(wrong) or 'confidence'} has another type"))


def damaged_fact(fact_id: object, exc: Exception) -> CorruptDataError:
    """The error for a damaged fact."""
    return damaged("reading a fact", f"fact {fact_id!r}", exc)
