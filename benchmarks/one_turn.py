"""A turn as agents make them: a prompt, a tool call, its result and an answer."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

WHEN = datetime(2024, 4, 2, 9, 30, tzinfo=UTC)
PROMPT = "What did we pay Acme Corp in the last quarter, and is any of their invoices still open?"
ANSWER = (
    "We paid Acme Corp 3,612.50 EUR between January and March, on two invoices: INV-2024-0117 and INV-2024-0162. "
    "INV-2024-0188 is still open. Shall I put it on the next payment run?"
)
INVOICES = [
    {"number": "INV-2024-0117", "total": 2412.5, "status": "paid"},
    {"number": "INV-2024-0162", "total": 1200.0, "status": "paid"},
    {"number": "INV-2024-0188", "total": 980.0, "status": "open"},
]
MODEL = "gpt-4o-2024-08-06"
TOOL = "find_invoices"
ARGUMENTS = {"vendor": "Acme Corp", "since": "2024-01-01", "until": "2024-03-31"}
CALL = "call_Vq2xT7mB9nK4pL1s"


def _response(part: ModelResponsePart) -> ModelResponse:
    return ModelResponse(
        parts=[part],
        usage=RequestUsage(input_tokens=1_800, output_tokens=60),
        model_name=MODEL,
        timestamp=WHEN,
        provider_name="openai",
        provider_response_id="chatcmpl-9ACcOwYf3k2mXo4q8J1rS6tU7vW0x",
        finish_reason="stop",
    )


MESSAGES: list[ModelMessage] = [
    ModelRequest(parts=[UserPromptPart(PROMPT, timestamp=WHEN)], timestamp=WHEN),
    _response(ToolCallPart(TOOL, ARGUMENTS, tool_call_id=CALL)),
    ModelRequest(parts=[ToolReturnPart(TOOL, INVOICES, tool_call_id=CALL, timestamp=WHEN)]),
    _response(TextPart(ANSWER)),
]
