"""What is stored of a run: its own messages, and the two texts of the turn."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import Any

from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)
from pydantic_core import to_json


def own_messages(messages: Iterable[ModelMessage], run_id: str | None, told: Collection[str]) -> list[ModelMessage]:
    """Those of one run, without what every run is told anew: the agent's system prompt, and ``told``, the summaries and
    facts that were in the instructions. A fact that is deleted is to be nowhere else."""
    own = [message for message in messages if message.run_id == run_id]
    if own and isinstance(own[0], ModelRequest) and any(isinstance(part, SystemPromptPart) for part in own[0].parts):
        own[0] = replace(own[0], parts=list(dropwhile(_is_system_prompt, own[0].parts)))
    return [_without(told, message) for message in own if message.parts]


def _is_system_prompt(part: object) -> bool:
    return isinstance(part, SystemPromptPart)


def _without(told: Collection[str], message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ModelRequest) or message.instructions is None:
        return message
    instructions = message.instructions
    for text in told:
        for told_with_its_gap in (f"\n\n{text}", f"{text}\n\n", text):
            instructions = instructions.replace(told_with_its_gap, "")
    return message if instructions == message.instructions else replace(message, instructions=instructions or None)


def is_model_message(message: object) -> bool:
    """Whether it is one of pydantic-ai's."""
    return isinstance(message, (ModelRequest, ModelResponse))


def prompt_text(prompt: Any, messages: Sequence[ModelMessage]) -> str:
    """What the user said, as text."""
    if prompt is None:
        parts = (part for message in messages for part in message.parts if isinstance(part, UserPromptPart))
        prompt = next((part.content for part in parts), "")
    if isinstance(prompt, str):
        return prompt
    texts = (part if isinstance(part, str) else getattr(part, "content", "") for part in prompt)
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def response_text(output: Any, messages: Iterable[ModelMessage] = ()) -> str:
    """What the agent answered, as text: its output, as JSON if it is not text; of a run that waits, what it said."""
    if isinstance(output, str):
        return output
    if isinstance(output, DeferredToolRequests):
        return last_text(messages)
    try:
        return to_json(output, fallback=repr, bytes_mode="base64").decode()
    except Exception:  # noqa: BLE001 - an output may be anything, also what cannot even be shown
        return _shown(output)


def _shown(output: Any) -> str:
    try:
        return repr(output)
    except Exception:  # noqa: BLE001
        return f"<{type(output).__name__}>"


def last_text(messages: Iterable[ModelMessage]) -> str:
    """The last that the model said, for a run that has no output."""
    texts = [part.content for message in messages for part in message.parts if isinstance(part, TextPart)]
    return texts[-1] if texts else ""
