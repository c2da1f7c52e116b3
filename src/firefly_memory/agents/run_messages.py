"""The parts of a run that are stored: its own messages, and the two texts of the turn."""

from __future__ import annotations

from collections.abc import Iterable
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


def own_messages(
    messages: Iterable[ModelMessage], run_id: str | None, *, with_instructions: bool
) -> list[ModelMessage]:
    """The messages of one run, without the agent's system prompt at the start: every run adds it again."""
    own = [message for message in messages if message.run_id == run_id]
    if own and isinstance(own[0], ModelRequest) and any(map(_is_system_prompt, own[0].parts)):
        own[0] = replace(own[0], parts=list(dropwhile(_is_system_prompt, own[0].parts)))
    if not with_instructions:
        own = [replace(message, instructions=None) if isinstance(message, ModelRequest) else message for message in own]
    # From an empty request with state "interrupted", pydantic-ai knows which calls to close.
    return [message for message in own if message.parts or message.state == "interrupted"]


def _is_system_prompt(part: object) -> bool:
    return isinstance(part, SystemPromptPart)


def is_model_message(message: object) -> bool:
    """Whether ``message`` is a message of pydantic-ai."""
    return isinstance(message, (ModelRequest, ModelResponse))


def prompt_text(prompt: Any) -> str:
    """The text parts of a prompt."""
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    texts = (part if isinstance(part, str) else getattr(part, "content", "") for part in prompt)
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def asked(messages: Iterable[ModelMessage]) -> Any:
    """The user's prompt in the messages."""
    for message in messages:
        if said := [part.content for part in message.parts if isinstance(part, UserPromptPart)]:
            return said[-1]  # the parts before it are texts of tools
    return None


def prompts_text(message: ModelMessage) -> str:
    """The text of all user prompts in a request."""
    return "\n".join(prompt_text(part.content) for part in message.parts if isinstance(part, UserPromptPart))


def response_text(output: Any, messages: Iterable[ModelMessage] = ()) -> str:
    """The agent's answer as text: its output, as JSON unless it is a text; or the last text of a run that waits."""
    return last_text(messages) if isinstance(output, DeferredToolRequests) else value_text(output)


def value_text(value: Any) -> str:
    """Any value as text: text as it is, another value as JSON."""
    if isinstance(value, str):
        return value
    try:
        return to_json(value, fallback=repr, bytes_mode="base64").decode()
    except Exception:  # noqa: BLE001 - it may be anything, also a value that cannot even be shown
        return _shown(value)


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001
        return f"<{type(value).__name__}>"


def last_text(messages: Iterable[ModelMessage]) -> str:
    """The last text of the model, for a run without an output."""
    texts = [part.content for message in messages for part in message.parts if isinstance(part, TextPart)]
    return texts[-1] if texts else ""


def in_conversation(messages: Iterable[ModelMessage], conversation_id: str) -> list[ModelMessage]:
    """Copies of the messages with the id of a conversation."""
    return [replace(message, conversation_id=conversation_id) for message in messages]
