"""A message as a condition sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from firefly_memory.messages.parts import ToolResult, contents_of, get
from firefly_memory.messages.shapes import Message, read, role_of

FIELDS = {"role", "content", "name", "tool_call_id", "status", "tool_calls", "metadata", "timestamp"}
"""What every message has in a condition, whichever library wrote it."""

ToolNames = Callable[[], Mapping[str, Any]]
"""Gives the name of the tool for each id of a call."""


class MessageView:
    """A message of any library, to be read by a condition. What the message lacks is ``None``."""

    def __init__(self, message: Any, tool_names: ToolNames = dict) -> None:
        self._message = message
        self._tool_names = tool_names

    @cached_property
    def _read(self) -> Message:
        return read(self._message)

    @cached_property
    def _result(self) -> ToolResult | None:
        return next(iter(self._read.tool_results), None)

    @cached_property
    def role(self) -> str | None:
        """``user``, ``assistant``, ``tool`` or ``system``."""
        return role_of(self._message)

    @cached_property
    def content(self) -> str | None:
        """The text of the message, with that of its tool results."""
        results = [text_of(result.content) for result in self._read.tool_results if result.content is not None]
        texts = [*self._read.texts, *results]
        return "\n".join(texts) if texts else None

    @cached_property
    def name(self) -> Any:
        """The name that the message has, or that of the tool whose result it is."""
        if isinstance(name := get(self._message, "name"), str):
            return name
        if self._result is None:
            return None
        return self._result.name or self._tool_names().get(self._result.id or "")

    @property
    def tool_call_id(self) -> str | None:
        """The id of the call whose result the message is."""
        return self._result and self._result.id

    @cached_property
    def status(self) -> str | None:
        """Of tool results ``success`` or, if one of them is an error, ``error``."""
        if self._result is None:
            return None
        return "error" if any(result.is_error for result in self._read.tool_results) else "success"

    @cached_property
    def tool_calls(self) -> list[dict[str, Any]] | None:
        """The calls, each a dict with ``id``, ``name`` and ``arguments``."""
        return [call._asdict() for call in self._read.tool_calls] or None

    @property
    def metadata(self) -> Any:
        """What the application has stored with the message."""
        return get(self._message, "metadata")

    @property
    def timestamp(self) -> Any:
        """When the message was made, as the message has it."""
        when = get(self._message, "timestamp")
        return get(self._message, "created_at") if when is None else when


def text_of(content: Any) -> str:
    """Text as it is, the texts of parts, and any other value as JSON."""
    parts = contents_of(content)
    if all(sort == "text" for sort, _ in parts):
        return "\n".join(part for _, part in parts)
    from pydantic_core import to_json

    try:
        return to_json(content, serialize_unknown=True, inf_nan_mode="constants", bytes_mode="base64").decode()
    except ValueError:  # half a character, for example
        return repr(content)
