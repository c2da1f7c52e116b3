"""Copies of messages without some of their parts. The messages themselves never change."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from firefly_memory.messages.authority import with_parts
from firefly_memory.messages.parts import SYSTEM_KINDS, get, kind_of
from firefly_memory.messages.shapes import as_dict, parts_of, tool_parts


def without_tool_parts(message: Any, positions: Collection[int]) -> Any:
    """A copy without the tool calls and tool results at ``positions``, in the order of ``tool_ids``.

    ``None`` if nothing is left that a model is sent but thinking. An object of a provider's SDK becomes a dict.
    """
    message = as_dict(message)
    tools = [part for part, _, _ in tool_parts((message,))]
    gone = {id(tools[position]) for position in positions}
    if id(message) in gone:
        return None
    left = _without(message, gone)
    return left if _says_something(left) else None


def system_parts_of(message: Any) -> Any:
    """A copy of a request of pydantic-ai with its parts of the system only; ``None`` if it has none."""
    kept = [number for number, part in enumerate(_parts_of_request(message)) if kind_of(part) in SYSTEM_KINDS]
    return _with_parts(message, kept) if kept else None


def without_system_parts_of(message: Any) -> Any:
    """A request of pydantic-ai without its parts of the system; any other message as it is."""
    parts = _parts_of_request(message)
    kept = [number for number, part in enumerate(parts) if kind_of(part) not in SYSTEM_KINDS]
    return message if len(kept) == len(parts) else _with_parts(message, kept)


def _parts_of_request(message: Any) -> Sequence[Any]:
    parts = get(message, "parts") if get(message, "kind") == "request" else None
    return parts if isinstance(parts, (list, tuple)) else ()


def _with_parts(message: Any, kept: list[int]) -> Any:
    if isinstance(message, dict):
        return with_parts(message, kept)
    return replace(message, parts=[message.parts[number] for number in kept])


def _without(message: Any, gone: set[int]) -> Any:
    parts = get(message, "parts")
    if isinstance(parts, (list, tuple)):
        message = _with_parts(message, [number for number, part in enumerate(parts) if id(part) not in gone])
    if not isinstance(message, dict):
        return message
    left = dict(message)
    for name in ("tool_calls", "content"):
        if isinstance(items := message.get(name), list):
            left[name] = [item for item in items if id(item) not in gone]
    if not left.get("tool_calls", True):  # OpenAI refuses an empty list
        del left["tool_calls"]
    if id(message.get("function_call")) in gone:
        del left["function_call"]
    return left


_SAID = ("role", "content", "tool_calls", "function_call", "refusal", "audio")


def _says_something(message: Any) -> bool:
    if isinstance(message, dict) and "role" in message:  # a name, for example, says nothing alone
        message = {name: message[name] for name in _SAID if name in message}
    return any(part != "" for sort, part in parts_of(message) if sort not in {"thinking", "answered call"})
