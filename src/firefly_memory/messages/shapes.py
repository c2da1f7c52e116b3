"""The one description of how messages are written.

It covers pydantic-ai's messages (as objects, and as the JSON that they become), the dicts of OpenAI's chat and of its
responses, Anthropic's dicts, plain text, and dataclasses and pydantic models with a ``role``, such as the objects of
the providers' SDKs. pydantic-ai is not imported. Any JSON value may be stored as a message. So no function here raises
an error for a value with an unknown shape: the value, or the part of it, is read as data.

* :func:`read` gives the role, the texts, the tool calls, the tool results and the files of a message.
* :func:`parts_of` gives all that a model is sent of a message, as a flat list of parts, each with its :class:`Sort`.
  ``call_of``, ``result_parts``, ``thinking_of`` and ``file_of`` read a part of such a list.
* :func:`tool_parts` gives the tool calls and tool results of many messages, for their ids.
* :func:`role_of` gives the role of a message, faster than :func:`read`.

:mod:`firefly_memory.messages.parts` describes the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from firefly_memory.messages.parts import (
    TOOL_IDS,
    File,
    Part,
    ToolCall,
    ToolResult,
    add_contents,
    add_part,
    call_of,
    file_of,
    first,
    get,
    kind_of,
    result_of,
)


class Message(NamedTuple):
    """What :func:`read` finds in a message. The contents of tool results are in ``tool_results`` only."""

    role: str | None
    """``user``, ``assistant``, ``tool`` or ``system``, or another word of the message's own; ``None`` if unknown.

    A request of pydantic-ai has the role ``user`` if it contains a user prompt.
    """
    texts: tuple[str, ...]
    tool_calls: tuple[ToolCall, ...]
    """The calls that the program answers. Tools that the provider runs itself are not among them."""
    tool_results: tuple[ToolResult, ...]
    files: tuple[File, ...]


def read(message: Any) -> Message:
    """The contents of a message of any shape."""
    message = as_dict(message)
    tools = list(tool_parts([message]))
    is_tool_part = any(part is message for part, _, _ in tools)  # a tool message, or an item of OpenAI's responses
    parts = [] if is_tool_part else parts_of(message)
    texts = tuple(part for sort, part in parts if sort == "text")
    calls = tuple(call_of(part, call_id) for part, call_id, is_call in tools if is_call)
    results = tuple(result_of(part, call_id) for part, call_id, is_call in tools if not is_call)
    files = tuple(file_of(part) for sort, part in parts if sort == "file")
    role = _role_of(message, parts)
    if role == "user" and results and not texts and not files:  # Anthropic's tool results are in a user's message
        role = "tool"
    return Message(role, texts, calls, results, files)


def role_of(message: Any) -> str | None:
    """The role that :func:`read` finds, without reading the contents where the role does not depend on them."""
    role = get(message, "role")
    if isinstance(role, str):
        role = _ROLES.get(role, role)
        if isinstance(message, dict) and (role != "user" or isinstance(message.get("content"), str)):
            return role
    else:
        kind = get(message, "kind")
        if kind == "response":
            return "assistant"
        if kind == "request":
            role = _role_of_request(message)
            if role != "user" or next(tool_parts((message,)), None) is None:
                return role
    return read(message).role


_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "developer": "system"}
"""Other words for the four roles."""

_ROLE_OF_KIND = {
    "user-prompt": "user",
    "speech": "user",
    "tool-return": "tool",
    "retry-prompt": "tool",
    "retry-feedback": "tool",
    "system-prompt": "system",
}
"""The role of a request of pydantic-ai, by the first of these kinds that one of its parts has."""

_ROLE_OF_SORT = {"call": "assistant", "thinking": "assistant"}


def _role_of(message: Any, parts: list[Part]) -> str | None:
    role = get(message, "role")
    if isinstance(role, str):
        return _ROLES.get(role, role)
    match get(message, "kind"):
        case "response":
            return "assistant"
        case "request":
            return _role_of_request(message)
    kind = kind_of(message)
    if kind in TOOL_IDS:  # an item of OpenAI's responses
        return "assistant" if TOOL_IDS[kind][0] else "tool"
    return next((_ROLE_OF_SORT[sort] for sort, _ in parts if sort in _ROLE_OF_SORT), None)


def _role_of_request(message: Any) -> str | None:
    own = get(message, "parts")
    kinds = set(map(kind_of, own)) if isinstance(own, (list, tuple)) else set()
    for kind, role in _ROLE_OF_KIND.items():
        if kind in kinds:
            return role
    return None


def instructions_of(message: Any) -> Any:
    """The instructions that a request of pydantic-ai carries beside its parts."""
    return get(message, "instructions") if get(message, "kind") == "request" else None


# Tool calls and tool results


ToolPart = tuple[Any, str | None, bool]
"""A tool call or a tool result (a part of a message, or a whole message); the id of the call; whether it is a call."""


def tool_parts(messages: Iterable[Any]) -> Iterator[ToolPart]:
    """The tool calls and tool results of messages, in order."""
    for message in messages:
        if isinstance(message, dict):
            yield from _tool_members(message)
            continue
        for part in getattr(message, "parts", None) or ():
            kind = getattr(part, "part_kind", "")
            if kind in TOOL_IDS and part.tool_name is not None:
                yield part, part.tool_call_id, TOOL_IDS[kind][0]


def tool_ids(message: Any) -> list[tuple[str | None, Any, bool]]:
    """For each tool call and tool result of a message, in the order of :func:`tool_parts`: the id of the call, the name
    of the tool if the part says it, and whether it is a call."""
    return [
        (call_id, call_of(part).name if is_call else first(part, ("tool_name", "name")), is_call)
        for part, call_id, is_call in tool_parts((as_dict(message),))
    ]


def _tool_members(message: dict[str, Any]) -> Iterator[ToolPart]:
    """The tool calls and tool results of a dict: its own members, itself, and its parts."""
    yield from _tools_of_chat(message)
    blocks = [message]
    for name in ("content", "parts"):
        if isinstance(inner := message.get(name), list):
            blocks += inner
    for block in blocks:
        kind = kind_of(block) if isinstance(block, dict) else ""
        if kind in TOOL_IDS and (kind != "retry-prompt" or block.get("tool_name") is not None):
            is_call, name = TOOL_IDS[kind]
            call_id = block.get(name)
            yield block, call_id if isinstance(call_id, str) else None, is_call


def _tools_of_chat(message: dict[str, Any]) -> Iterator[ToolPart]:
    """The tool calls and tool results that OpenAI's chat has beside the content. Its older functions have no ids."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        yield call, _id(get(call, "id")), True
    if isinstance(message.get("function_call"), dict):
        yield message["function_call"], None, True
    role = message.get("role")
    if role == "tool":
        yield message, _id(message.get("tool_call_id")), False
    elif role == "function":
        yield message, None, False


def _id(value: Any) -> str | None:
    return None if value is None else str(value)


# All that is sent


def parts_of(message: Any) -> list[Part]:
    """All that a model is sent of a message. Ids, timestamps, metadata and instructions are not among it."""
    if isinstance(message, str):
        return [("text", message)]
    parts: list[Part] = []
    own = get(message, "parts")
    if isinstance(own, (list, tuple)):  # pydantic-ai's
        for part in own:
            add_part(parts, part)
        return parts
    message = as_dict(message)
    if isinstance(message, dict) and "role" in message:
        for name, value in message.items():
            if value:
                _add_member(parts, name, value)
    else:
        add_part(parts, message)
    return parts


def as_dict(message: Any) -> Any:
    """An object with a ``role``, such as those of the providers' SDKs, as a dict; any other message as it is."""
    if isinstance(message, (dict, str)) or not hasattr(message, "role"):
        return message
    from pydantic_core import to_jsonable_python

    document = to_jsonable_python(message, serialize_unknown=True)
    if isinstance(document, dict) or "role" not in (own := getattr(message, "__dict__", {})):
        return document
    return to_jsonable_python(own, serialize_unknown=True)


_NOT_SENT = {
    *("role", "type", "id", "object", "index", "status", "model", "metadata", "usage", "annotations", "logprobs"),
    *("created", "created_at", "timestamp", "finish_reason", "stop_reason", "stop_sequence", "cache_control"),
}


def _add_member(parts: list[Part], name: str, value: Any) -> None:
    """A member of a dict with a role. The members of unknown formats count as data."""
    if name == "content":
        add_contents(parts, value)
    elif name == "tool_calls" and isinstance(value, list):
        parts.extend(("call", call) for call in value)
    elif name == "function_call":
        parts.append(("call", value))
    elif name == "tool_call_id":
        parts.append(("answered call", value))
    elif name not in _NOT_SENT:
        parts.append(("data", value))
