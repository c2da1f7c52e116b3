"""What is said of documents of conversations that somebody damaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firefly_memory import codec
from firefly_memory.errors import CorruptDataError
from firefly_memory.identifiers import original_name


def damaged(document: Mapping[str, Any], exc: Exception) -> CorruptDataError:
    """The error for a document of a conversation or a turn."""
    where = f"conversation {original_name(str(document.get('conversation_id', document.get('_id'))))!r}"
    if "turn_id" in document:
        where = f"turn {document['turn_id']} of {where}"
    return codec.damaged("reading a conversation", where, exc)


def lacks_turns(conversation_id: str, count: int, found: int) -> CorruptDataError:
    lacking = ValueError(f"it has {found} of its first {count} turns")
    return damaged({"_id": conversation_id}, lacking)


def check_findable(document: Mapping[str, Any] | None) -> None:
    """``CorruptDataError`` for the document of a conversation that is not found, because its two ids differ."""
    if document is not None and document.get("conversation_id") != document["_id"]:
        raise damaged({"_id": document["_id"]}, ValueError("its conversation_id is another one"))
