"""What is stored of a run: its own messages, and the two texts of the turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, UserPromptPart, repair_messages
from pydantic_core import to_json


def own_messages(
    messages: Sequence[ModelMessage], ctx: RunContext[Any], *, broke_off: bool = False
) -> list[ModelMessage]:
    """Those of the run. One that broke off has its open calls closed, so that the next run can go on."""
    own = [message for message in messages if message.run_id == ctx.run_id]
    return repair_messages(own) if broke_off else own


def is_open(message: ModelMessage) -> bool:
    """Whether it waits for the results of tools, or for the rest of a response."""
    return isinstance(message, ModelResponse) and bool(message.tool_calls or message.state == "suspended")


def prompt_text(prompt: Any, messages: Sequence[ModelMessage]) -> str:
    """What the user said, as text."""
    if prompt is None:
        parts = (part for message in messages for part in message.parts if isinstance(part, UserPromptPart))
        prompt = next((part.content for part in parts), "")
    if isinstance(prompt, str):
        return prompt
    return "\n".join(filter(None, (part if isinstance(part, str) else getattr(part, "content", "") for part in prompt)))


def response_text(output: Any, messages: Sequence[ModelMessage] = ()) -> str:
    """What the agent answered, as text: its output, as JSON if it is not text, or the last that the model said."""
    if isinstance(output, str):
        return output
    if output is not None:
        return to_json(output, fallback=repr).decode()
    texts = [part.content for message in messages for part in message.parts if isinstance(part, TextPart)]
    return texts[-1] if texts else ""
