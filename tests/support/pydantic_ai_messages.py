"""Messages of pydantic-ai with parts of every kind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


EVERYTHING: list[Any] = [
    ModelRequest(
        parts=[
            SystemPromptPart("Be brief.", timestamp=WHEN),
            UserPromptPart(
                [
                    "Zürich \x00 漢字 \U0001f600",
                    ImageUrl("https://example.org/a.png"),
                    DocumentUrl("https://example.org/a.pdf"),
                    BinaryContent(bytes(range(256)), media_type="application/pdf"),
                ],
                timestamp=WHEN,
            ),
        ],
        instructions="Answer in German.",
        timestamp=WHEN,
    ),
    ModelResponse(
        parts=[
            ThinkingPart("hm", signature="signed"),
            TextPart("Let me see."),
            ToolCallPart(
                "weather", {"city": "Zürich", "big": 2**70, "exact": 1e22, "zero": -0.0}, tool_call_id="call 1"
            ),
            ToolCallPart("broken", '{"not": json', tool_call_id="call 2"),
        ],
        model_name="a-model",
        timestamp=WHEN,
        provider_details={"n": 1},
    ),
    ModelRequest(
        parts=[
            ToolReturnPart("weather", {"degrees": [1, 2.5, None]}, tool_call_id="call 1", timestamp=WHEN),
            ToolReturnPart("broken", "no such thing", tool_call_id="call 2", timestamp=WHEN, outcome="failed"),
        ],
        timestamp=WHEN,
    ),
    ModelResponse(parts=[TextPart("Cold.")], timestamp=WHEN),
]
