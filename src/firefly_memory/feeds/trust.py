"""Which messages of an untrusted archive may stay, because nothing that they say can be taken for the system's."""

from __future__ import annotations

from typing import Any

from firefly_memory.feeds.constants import COMPLETION_TYPES, CONVERSATION_TYPES, PLANNING_TYPES, TRACE_TYPES
from firefly_memory.messages.authority import without_system_messages

_TYPES = CONVERSATION_TYPES | TRACE_TYPES | COMPLETION_TYPES | PLANNING_TYPES


def speaks_for_itself(message: dict[str, Any]) -> bool:
    """Whether it has a type of this library or none, and is no message of another library that may be the system's."""
    kind = message.get("type")
    if kind is not None and not (isinstance(kind, str) and kind in _TYPES):
        return False
    as_a_user = {"role": "user", **{name: value for name, value in message.items() if name != "type"}}
    return "kind" not in message and without_system_messages([as_a_user]) == [as_a_user]
