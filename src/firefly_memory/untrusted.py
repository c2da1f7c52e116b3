"""What an archive of strangers may not decide: what a model is told with the authority of the system.

A message in any shape that is stored loses what speaks as the system: pydantic-ai's parts and instructions, and the
messages of other libraries whose role is ``system`` or ``developer``.
"""

from __future__ import annotations

import json
from typing import Any

from firefly_memory.archive_items import CONVERSATION, ENTRY, MESSAGE, TURN, Item
from firefly_memory.model_messages import NOTES, compact
from firefly_memory.scopes import BY_A_MODEL, NAMESPACE

_ROLES = {"system", "developer"}
_PARTS = {
    *("system-prompt", "instruction-delta", "instruction-baseline"),
    *("capability-load-delta", "model-settings-delta"),
}


def without_authority(kind: str, item: Item) -> Item:
    """``item`` of a line, as it may be saved. Tokens are counted anew, and a summary goes, which is replayed as the
    system's: the turns that it stood for are replayed instead."""
    match kind:
        case _ if kind == TURN:
            item = {**item, "token_estimate": None}
            if isinstance(item.get("raw_messages"), list):
                left = (_without_system(message) for message in item["raw_messages"])
                item["raw_messages"] = [message for message in left if message is not None]
        case _ if kind == CONVERSATION:
            item = {**item, "summary": None, "summarized_turns": 0}
        case _ if kind == MESSAGE:
            message = _of_pydantic_ai(json.loads(item["message"]))  # it stays in its place, perhaps with nothing in it
            item = {**item, "message": compact(message)}
        case _ if kind == ENTRY and str.startswith(item["namespace"], NAMESPACE):
            item = {**item, "metadata": dict(BY_A_MODEL)}
    return item


def _without_system(message: Any) -> Any:
    """``None`` if nothing is left."""
    if not isinstance(message, dict):
        return message
    role = message.get("role")
    if isinstance(role, str) and role.strip().lower() in _ROLES:
        return None
    if not isinstance(message.get("parts"), list):
        return message
    left = _of_pydantic_ai(message)
    return left if left["parts"] or not message["parts"] else None


def _of_pydantic_ai(message: dict[str, Any]) -> dict[str, Any]:
    kept = [number for number, part in enumerate(message["parts"]) if not _is_of_the_system(part)]
    left = {**message, "parts": [message["parts"][number] for number in kept]}
    if left.get("instructions") is not None:
        left["instructions"] = None
    if NOTES in left:  # which count the parts
        left[NOTES] = [_moved(note, kept) for note in left[NOTES] if _is_of(note, kept)]
    return left


def _is_of_the_system(part: Any) -> bool:
    return isinstance(part, dict) and part.get("part_kind") in _PARTS


def _is_of(note: list[Any], kept: list[int]) -> bool:
    return note[1] != "parts" or note[2] in kept


def _moved(note: list[Any], kept: list[int]) -> list[Any]:
    return [*note[:2], kept.index(note[2]), *note[3:]] if note[1] == "parts" else note
