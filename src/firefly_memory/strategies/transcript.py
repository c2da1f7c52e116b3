"""Messages as data in a prompt: nothing in a message can look like a heading, or like another message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from firefly_memory.messages.quoted_text import indented
from firefly_memory.messages.removal import without_system_parts_of
from firefly_memory.messages.shapes import Message, read
from firefly_memory.messages.storage import sendable
from firefly_memory.strategies.message_view import text_of

_SPEAKERS = {"user": "User", "assistant": "Assistant", "tool": "Tool"}


def transcript(messages: Iterable[Any]) -> str:
    """The messages, each from the start of a line. Further lines of a text are indented. What is of the system is left
    out: it stays in the conversation, and is no part of a summary."""
    names: dict[str | None, str] = {}
    lines: list[str] = []
    for message in map(read, map(without_system_parts_of, messages)):
        if message.role == "system":
            continue
        names.update((call.id, str(call.name)) for call in message.tool_calls)
        lines += _lines(message, names)
    return "\n".join(lines)


def _lines(message: Message, names: Mapping[str | None, str]) -> Iterable[str]:
    speaker = _SPEAKERS.get(message.role or "", "Message")
    for text in message.texts:
        if text.strip():
            yield f"{speaker}: {indented(text)}"
    for file in message.files:
        yield f"{speaker} sent a file: {indented(file.media_type)}"
    for call in message.tool_calls:
        arguments = "" if call.arguments is None else text_of(call.arguments)
        yield indented(f"Assistant calls the tool {call.name}: {arguments}")
    for result in message.tool_results:
        outcome = "fails" if result.is_error else "returns"
        content = "" if result.content is None else text_of(result.content)
        yield indented(f"The tool {result.name or names.get(result.id, 'of a call')} {outcome}: {content}")


def section(heading: str, text: str) -> str:
    """A heading, and ``text`` under it: each line of the text is indented, so that none can be a heading."""
    return f"{heading}:\n  {indented(sendable(text))}"
