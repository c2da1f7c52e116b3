"""Messages of pydantic-ai and of feeds, compared by what they say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
OWN = "worker_1"
CALL = ToolCallPart("look", {"at": 1}, tool_call_id="c1")


def timeless(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in each.items() if key != "timestamp"} for each in messages]


def outline(messages: Sequence[ModelMessage]) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """What the messages say, without when."""
    names = ("part_kind", "content", "tool_name", "args", "tool_call_id", "outcome")
    return [
        (each.kind, [tuple(getattr(part, name, None) for name in names) for part in each.parts]) for each in messages
    ]


def returned(content: Any, **options: Any) -> list[ModelMessage]:
    return [ModelResponse(parts=[CALL]), ModelRequest(parts=[ToolReturnPart("look", content, "c1", **options)])]
