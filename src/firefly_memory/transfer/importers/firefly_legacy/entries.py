"""Turns a row of a predecessor's table, collection or file into a :class:`MemoryEntry`.

What it means must be certain: an instant without a time zone is in UTC; anything else that is not as it should be is
refused, with a reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn

from pydantic import ValidationError

from firefly_memory.entries.entry import MemoryEntry, MemoryScope

_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # what SQLite's text is read with


class RefusedError(Exception):
    """The row cannot become an entry; the text is the reason."""


IDS = {"namespace", "entry_id"}

DOCUMENTS = ("content", "data")
"""Where a row has its content or, from some predecessors, the whole entry. The first documents called it ``data``."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it was read: its columns by name, as they are or as JSON text, or why it could not be read."""

    namespace: Any
    entry_id: Any
    fields: Mapping[str, Any] | str | RefusedError


def read_json(text: str, what: str) -> Any:
    """The value of JSON text."""
    if _NOT_UTF8.search(text):
        raise RefusedError(f"{what} is not UTF-8")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise RefusedError(f"{what} is nested too deeply") from None
    except ValueError:
        raise RefusedError(f"{what} is not JSON") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def entry_of(row: Row, *, as_text: bool) -> MemoryEntry:
    """The entry, or :class:`RefusedError`. ``as_text`` says that contents are JSON text, and text no content itself."""
    if isinstance(row.fields, RefusedError):
        raise row.fields
    fields = read_json(row.fields, "the row") if isinstance(row.fields, str) else row.fields
    for name in ("namespace", "entry_id"):
        _check_text(name, getattr(row, name))
    document = next((name for name in DOCUMENTS if name in fields), None)
    if document is None:
        raise RefusedError("content is missing")
    content = fields[document]
    if as_text:
        if not isinstance(content, str):
            raise RefusedError(f"{document} is not JSON")
        content = read_json(content, document)
    whole = _whole_entry(content, row.entry_id)
    if whole is not None:
        return _entry(row.entry_id, whole, whole["content"])
    if document == "data":  # had no scopes, and a key had to be there
        fields = {"scope": MemoryScope.WORKING, **fields, "key": fields.get("key") or None}
    elif "scope" not in fields:
        raise RefusedError("content is not an entry with the row's entry_id")
    return _entry(row.entry_id, fields, content)


def _check_text(what: str, value: Any) -> None:
    if not isinstance(value, str):
        raise RefusedError(f"{what} is missing" if value is None else f"{what} is not text")
    if _NOT_UTF8.search(value):
        raise RefusedError(f"{what} is not UTF-8")


def _whole_entry(content: Any, entry_id: str) -> dict[str, Any] | None:
    """The JSON of the whole entry, which the predecessor stored as content, and which it read."""
    if isinstance(content, str) and content.lstrip().startswith("{"):
        try:
            content = read_json(content, "content")
        except RefusedError:
            return None
    is_entry = isinstance(content, dict) and content.get("entry_id") == entry_id and "content" in content
    return content if is_entry else None


def _entry(entry_id: str, fields: Mapping[str, Any], content: Any) -> MemoryEntry:
    created_at = _instant("created_at", fields.get("created_at"))
    if created_at is None:
        raise RefusedError("created_at is missing")
    metadata, importance, key = fields.get("metadata"), fields.get("importance"), fields.get("key")
    if isinstance(metadata, str):
        metadata = read_json(metadata, "metadata")
    if key is not None:
        _check_text("key", key)
    if isinstance(importance, bool) or not isinstance(importance, (int, float, type(None))):
        raise RefusedError("importance is not a number")
    try:
        return MemoryEntry(
            entry_id=entry_id,
            scope=fields.get("scope"),
            key=key,
            content=content,
            metadata={} if metadata is None else metadata,
            created_at=created_at,
            expires_at=_instant("expires_at", fields.get("expires_at")),
            importance=0.5 if importance is None else importance,
        )
    except ValidationError as exc:
        error = exc.errors()[0]
        raise RefusedError(f"{error['loc'][0]}: {error['msg']}") from None


def _instant(what: str, value: Any) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise RefusedError(f"{what} is not an instant") from None
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise RefusedError(f"{what} is not an instant")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value
