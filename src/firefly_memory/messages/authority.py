"""Messages of an untrusted archive, without those that speak to a model with the authority of the system.

Messages of pydantic-ai lose the parts and the instructions of the system. A message of another library is kept only if
it says, in the words of OpenAI or Anthropic, that a user, an assistant or a tool speaks: nobody knows what an
application makes of any other message.
"""

from __future__ import annotations

from typing import Any

from firefly_memory.messages.parts import SYSTEM_KINDS
from firefly_memory.messages.pydantic_ai import NOTES

_ROLES = {"user", "assistant", "tool", "function"}
_KINDS = {"request", "response"}
_NOT_A_MESSAGE = {"kind", "kwargs", "message", "messages", "parts"}
"""Keys under which other libraries keep another message, or what one says."""


def without_system_messages(messages: list[Any]) -> list[Any]:
    """The messages of a turn, without those of the system and those of a shape that is not known."""
    left = (_without_system(message) for message in messages)
    return [message for message in left if message is not None]


def without_system_parts(message: dict[str, Any]) -> dict[str, Any]:
    """A message of pydantic-ai, perhaps with no parts left."""
    left = with_parts(message, [n for n, part in enumerate(message["parts"]) if not _is_of_the_system(part)])
    if left.get("instructions") is not None:
        left["instructions"] = None
    return left


def with_parts(message: dict[str, Any], kept: list[int]) -> dict[str, Any]:
    """A message of pydantic-ai with some of its parts."""
    left = {**message, "parts": [message["parts"][number] for number in kept]}
    if NOTES in left:  # which count the parts
        left[NOTES] = [_moved(note, kept) for note in left[NOTES] if _is_of(note, kept)]
    return left


def _without_system(message: Any) -> Any:
    """``None`` if nothing is left."""
    if not isinstance(message, dict):
        return None
    if _is_one_of(message.get("role"), _ROLES):
        return message if _is_plain(message) else None
    if not (_is_one_of(message.get("kind"), _KINDS) and isinstance(message.get("parts"), list)):
        return None
    left = without_system_parts(message)
    return left if left["parts"] or not message["parts"] else None


def _is_plain(message: dict[str, Any]) -> bool:
    """Whether nothing but the role says who speaks."""
    others = [key.strip().lower() for key in message if key != "role"]
    return message.get("type", "message") == "message" and not ({"role", *_NOT_A_MESSAGE} & set(others))


def _is_one_of(value: Any, known: set[str]) -> bool:
    return isinstance(value, str) and value in known


def _is_of_the_system(part: Any) -> bool:
    kind = part.get("part_kind") if isinstance(part, dict) else None
    return not isinstance(kind, str) or kind in SYSTEM_KINDS


def _is_of(note: list[Any], kept: list[int]) -> bool:
    return note[1] != "parts" or note[2] in kept


def _moved(note: list[Any], kept: list[int]) -> list[Any]:
    return [*note[:2], kept.index(note[2]), *note[3:]] if note[1] == "parts" else note
