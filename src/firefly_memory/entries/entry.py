"""The unit of storage: :class:`MemoryEntry`, and the :class:`MemoryScope` that classifies it."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, PlainValidator

from firefly_memory import clock
from firefly_memory.identifiers import new_entry_id


class MemoryScope(StrEnum):
    """How long an entry is meant to live."""

    CONVERSATION = "conversation"
    WORKING = "working"
    LONG_TERM = "long_term"


def in_utc(moment: datetime) -> datetime:
    """The same instant, in UTC."""
    if moment.tzinfo is UTC:
        return moment
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{moment.isoformat()} lies outside the years 1 to 9999 in UTC") from None


def _text(value: Any) -> str:
    # Not pydantic's own str: it refuses surrogates, which a store gives back like any other character.
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {type(value).__name__}")
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"must be a dict, not {type(value).__name__}")
    return value


Instant = Annotated[AwareDatetime, AfterValidator(in_utc)]


class MemoryEntry(BaseModel):
    """One remembered value.

    ``content`` is any JSON value; other Python values are normalised when they are stored, as
    :mod:`firefly_memory.codec` lists. Instants need a time zone and are kept in UTC.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", validate_assignment=True)

    entry_id: Annotated[str, PlainValidator(_text, json_schema_input_type=str)] = Field(default_factory=new_entry_id)
    """The id of the entry. Saving an entry replaces the one with its id."""
    scope: MemoryScope = MemoryScope.WORKING
    """How long the entry is meant to live. A store keeps it as it is."""
    key: Annotated[str | None, PlainValidator(_text_or_none, json_schema_input_type=str | None)] = None
    """A name by which the entry is found; several entries may have the same one."""
    content: Any = None
    """Any JSON value."""
    metadata: Annotated[dict[str, Any], PlainValidator(_mapping, json_schema_input_type=dict[str, Any])] = Field(
        default_factory=dict
    )
    """What the application notes about the entry."""
    created_at: Instant = Field(default_factory=clock.now)
    """When the entry was made. Entries are in this order."""
    expires_at: Instant | None = None
    """When the entry ends; ``None`` for never. Stores never return an entry that has expired."""
    importance: float = Field(default=0.5, ge=0.0, le=1.0, allow_inf_nan=False)
    """A number from 0.0 to 1.0."""

    @property
    def is_expired(self) -> bool:
        """Whether ``expires_at`` has passed. Stores never return such an entry."""
        return self.expires_at is not None and self.expires_at <= clock.now()


_SCOPES = {scope.value: scope for scope in MemoryScope}
_ALL_FIELDS = set(MemoryEntry.model_fields)
_set = object.__setattr__


def restored_entry(
    entry_id: str,
    scope: str,
    key: str | None,
    content: Any,
    metadata: dict[str, Any],
    created_at: datetime,
    expires_at: datetime | None,
    importance: float,
) -> MemoryEntry:
    """A :class:`MemoryEntry` from a row this library wrote: validated when it was saved, so not a second time.

    Validation would dominate large loads. What a damaged row can still get wrong is checked: ``KeyError`` for an
    unknown scope, ``ValueError`` for an importance out of range, ``TypeError`` for anything of the wrong type.
    Instants are in UTC.
    """
    if not 0.0 <= importance <= 1.0:
        raise ValueError(f"importance is {importance!r}")
    if type(metadata) is not dict:
        raise TypeError("metadata is not an object")
    entry = MemoryEntry.__new__(MemoryEntry)
    _set(
        entry,
        "__dict__",
        {
            "entry_id": entry_id,
            "scope": _SCOPES[scope],
            "key": key,
            "content": content,
            "metadata": metadata,
            "created_at": created_at,
            "expires_at": expires_at,
            "importance": importance,
        },
    )
    _set(entry, "__pydantic_fields_set__", _ALL_FIELDS.copy())
    _set(entry, "__pydantic_extra__", None)
    _set(entry, "__pydantic_private__", None)
    return entry
