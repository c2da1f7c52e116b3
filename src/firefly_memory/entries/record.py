"""What crosses the border between the public stores and their backends: entries, encoded and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from firefly_memory.codec import DAMAGE, Form, damaged
from firefly_memory.entries.entry import MemoryEntry, MemoryScope, in_utc, restored_entry
from firefly_memory.entries.fact_ids import check_entry_id
from firefly_memory.errors import DatabaseStoreError, InvalidEntryError
from firefly_memory.identifiers import ESCAPE, original_name, stored_name
from firefly_memory.reprs import shown
from firefly_memory.validation import checked_mapping


class Position(NamedTuple):
    """A position in the order of a namespace (rule R4)."""

    created_at: datetime
    entry_id: str


class Record(NamedTuple):
    """A row, document or list item: the columns of ``memory_entries``, in their order."""

    entry_id: str
    namespace: str
    scope: str
    key: str | None
    content: Any
    metadata: Any
    created_at: datetime
    expires_at: datetime | None
    importance: float

    @property
    def position(self) -> Position:
        return Position(self.created_at, self.entry_id)


Row = Sequence[Any]
"""The same columns in the same order, as a backend gives them: instants may still need reading."""

ReadInstant = Callable[[Any], datetime]


def as_it_is(moment: Any) -> datetime:
    """For backends that give instants as they took them."""
    instant: datetime = moment
    return instant


def to_record(form: Form, namespace: str, entry: MemoryEntry) -> Record:
    """``entry`` as the backend keeps it. ``namespace`` has already been through the door."""
    if not isinstance(entry, MemoryEntry):
        raise InvalidEntryError("entry", f"must be a MemoryEntry, not {type(entry).__name__}")
    entry_id = stored_name("entry_id", entry.entry_id)
    check_entry_id(original_name(namespace), entry.key, entry_id)
    metadata = checked_mapping("metadata", entry.metadata)
    importance = entry.importance
    # The model checks this too, but model_construct() and __dict__ go around it.
    if not isinstance(importance, (int, float)) or not 0.0 <= importance <= 1.0:
        raise InvalidEntryError("importance", f"must be a number from 0.0 to 1.0, not {shown(importance)}")
    try:
        scope = MemoryScope(entry.scope)
    except ValueError:
        raise InvalidEntryError("scope", f"{entry.scope!r} is not a MemoryScope") from None
    return Record(
        entry_id=entry_id,
        namespace=namespace,
        scope=scope.value,
        key=None if entry.key is None else stored_name("key", entry.key),
        content=form.encode(entry.content, "content"),
        metadata=form.encode(metadata, "metadata"),
        created_at=_instant("created_at", entry.created_at),
        expires_at=None if entry.expires_at is None else _instant("expires_at", entry.expires_at),
        importance=float(importance) + 0.0,  # which -0.0 is as well: SQLite has no other zero
    )


def record_of(form: Form, entry_id: str, namespace: str, key: str, content: Any, created_at: datetime) -> Record:
    """An entry of the library's own, in a namespace that entries of users cannot have."""
    scope = MemoryScope.CONVERSATION.value
    return Record(entry_id, namespace, scope, key, form.encode(content), form.encode({}), created_at, None, 0.5)


def to_entries(form: Form, read_instant: ReadInstant, rows: Iterable[Row], operation: str) -> list[MemoryEntry]:
    """The entries that ``rows`` were made from, or :class:`CorruptDataError` if somebody damaged one since."""
    entries: list[MemoryEntry] = []
    decode = form.decode
    for entry_id, namespace, scope, key, content, metadata, created_at, expires_at, importance in rows:
        try:
            entries.append(
                restored_entry(
                    original_name(entry_id) if ESCAPE in entry_id else entry_id,
                    scope,
                    original_name(key) if key is not None and ESCAPE in key else key,
                    decode(content),
                    {} if metadata == "{}" else decode(metadata),
                    read_instant(created_at),
                    None if expires_at is None else read_instant(expires_at),
                    importance,
                )
            )
        except RecursionError as exc:
            reason = f"entry {entry_id!r} is nested too deeply for the room left on Python's stack"
            raise DatabaseStoreError(operation, reason) from exc
        except DAMAGE as exc:
            where = f"entry {entry_id!r} in namespace {namespace!r}"
            raise damaged(operation, where, exc) from exc
    return entries


def _instant(what: str, moment: datetime) -> datetime:
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidEntryError(what, f"must be a datetime with a time zone, not {moment!r}")
    try:
        return moment if moment.tzinfo is UTC else in_utc(moment)
    except ValueError as exc:
        raise InvalidEntryError(what, str(exc)) from exc
