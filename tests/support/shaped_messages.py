"""The same conversation in the shapes of several libraries."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from firefly_memory.messages.shapes import read, tool_ids

WHEN = datetime(2026, 1, 2, tzinfo=UTC)

Calls = Iterable[tuple[str, str]]


class Dicts:
    """Dicts with ``role`` and ``content``."""

    def system(self, text: str) -> Any:
        return {"role": "system", "content": text}

    def user(self, text: str) -> Any:
        return {"role": "user", "content": text}

    def assistant(self, text: str | None = None, calls: Calls = ()) -> Any:
        made = [{"id": call_id, "name": name} for call_id, name in calls]
        return {"role": "assistant", "content": text} | ({"tool_calls": made} if made else {})

    def tool(self, call_id: str, name: str, content: str = "result", *, is_error: bool = False) -> Any:
        message = {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}
        return message | ({"status": "error"} if is_error else {})


class LangChainRoles(Dicts):
    """Dicts with the roles ``human`` and ``ai``."""

    def user(self, text: str) -> Any:
        return {"role": "human", "content": text}

    def assistant(self, text: str | None = None, calls: Calls = ()) -> Any:
        return super().assistant(text, calls) | {"role": "ai"}


class OpenAI(Dicts):
    """Dicts of OpenAI's chat, whose results do not name the tool."""

    def assistant(self, text: str | None = None, calls: Calls = ()) -> Any:
        made = [{"id": i, "type": "function", "function": {"name": name, "arguments": "{}"}} for i, name in calls]
        return {"role": "assistant", "content": text} | ({"tool_calls": made} if made else {})

    def tool(self, call_id: str, name: str, content: str = "result", *, is_error: bool = False) -> Any:
        message = {"role": "tool", "tool_call_id": call_id, "content": content}
        return message | ({"status": "error"} if is_error else {})


class Anthropic(Dicts):
    """Dicts of Anthropic, whose tool results are in messages of the user."""

    def assistant(self, text: str | None = None, calls: Calls = ()) -> Any:
        said = [] if text is None else [{"type": "text", "text": text}]
        made = [{"type": "tool_use", "id": call_id, "name": name, "input": {}} for call_id, name in calls]
        return {"role": "assistant", "content": [*said, *made]}

    def tool(self, call_id: str, name: str, content: str = "result", *, is_error: bool = False) -> Any:
        result = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}
        return {"role": "user", "content": [result]}


class PydanticAI:
    """Messages of pydantic-ai."""

    def system(self, text: str) -> Any:
        return self._shaped(ModelRequest([SystemPromptPart(text, timestamp=WHEN)], timestamp=WHEN))

    def user(self, text: str) -> Any:
        return self._shaped(ModelRequest([UserPromptPart(text, timestamp=WHEN)], timestamp=WHEN))

    def assistant(self, text: str | None = None, calls: Calls = ()) -> Any:
        said = [] if text is None else [TextPart(text)]
        made = [ToolCallPart(name, {}, call_id) for call_id, name in calls]
        return self._shaped(ModelResponse([*said, *made], timestamp=WHEN))

    def tool(self, call_id: str, name: str, content: str = "result", *, is_error: bool = False) -> Any:
        part = ToolReturnPart(name, content, call_id, timestamp=WHEN, outcome="failed" if is_error else "success")
        return self._shaped(ModelRequest([part], timestamp=WHEN))

    def _shaped(self, message: ModelMessage) -> Any:
        return message


class PydanticAIJSON(PydanticAI):
    """The JSON of pydantic-ai's messages."""

    def _shaped(self, message: ModelMessage) -> Any:
        (document,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
        return document


Shape = Dicts | PydanticAI

SHAPES: dict[str, Shape] = {
    "dicts": Dicts(),
    "human and ai": LangChainRoles(),
    "OpenAI": OpenAI(),
    "Anthropic": Anthropic(),
    "pydantic-ai": PydanticAI(),
    "pydantic-ai, JSON": PydanticAIJSON(),
}


def turns(shape: Shape, number: int) -> list[Any]:
    """So many interactions of a question and an answer."""
    return [each for n in range(number) for each in (shape.user(f"question {n}"), shape.assistant(f"answer {n}"))]


def texts(messages: Iterable[Any]) -> list[str]:
    """The texts of messages and of their tool results."""
    return [
        str(text)
        for message in map(read, messages)
        for text in (*message.texts, *(result.content for result in message.tool_results))
    ]


def unpaired(messages: Iterable[Any]) -> set[str | None]:
    """The ids of calls without a result, and of results without a call."""
    ids = [each for message in messages for each in tool_ids(message)]
    calls = {call_id for call_id, _, is_call in ids if is_call}
    return calls ^ {call_id for call_id, _, is_call in ids if not is_call}
