"""Turns as messages for a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.messages.storage import sendable, summary_text
from firefly_memory.validation import is_installed


def replayed(turns: Sequence[ConversationTurn], in_front: Sequence[ConversationTurn] = ()) -> list[Any]:
    """The messages of ``turns`` and of what stands in front of them, to be sent to a model.

    Messages are made for what stands in front, and for turns that were stored with texts only. They take the form of
    the other messages: pydantic-ai's, their JSON, or dicts with ``role`` and ``content``. If there are no other
    messages, the form is pydantic-ai's, or dicts if pydantic-ai is not installed.
    """
    own = next((turn.raw_messages[0] for turn in reversed(turns) if turn.raw_messages), None)
    if own is None:
        make = texts_as_messages if is_installed("pydantic_ai") else _dicts
    elif isinstance(own, dict) and "parts" in own:
        make = _model_dicts
    else:
        make = texts_as_messages if hasattr(own, "parts") else _dicts
    messages: list[Any] = []
    for turn in (*in_front, *turns):
        messages += turn.raw_messages or make(turn)
    return messages


def _in_front(turn: ConversationTurn) -> str:
    return summary_text(turn.assistant_response) if turn.is_summary else turn.assistant_response


def _dicts(turn: ConversationTurn) -> list[Any]:
    if turn.is_summary or turn.is_recalled:
        return [{"role": "system", "content": _in_front(turn)}]
    texts = {"user": turn.user_prompt, "assistant": turn.assistant_response}
    return [{"role": role, "content": text} for role, text in texts.items() if text]


def texts_as_messages(turn: ConversationTurn) -> list[Any]:
    """The texts of ``turn`` as messages of pydantic-ai."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    # Not the current time: a turn is always replayed as the same messages.
    when = turn.created_at
    prompt, response = sendable(turn.user_prompt), sendable(turn.assistant_response)
    if turn.is_summary or turn.is_recalled:
        # A program can find these in a history by the mark.
        mark = {"firefly_memory": "summary" if turn.is_summary else "recalled"}
        part = SystemPromptPart(sendable(_in_front(turn)), timestamp=when, metadata=mark)
        return [ModelRequest(parts=[part], timestamp=when)]
    messages: list[Any] = []
    if prompt:
        messages.append(ModelRequest(parts=[UserPromptPart(prompt, timestamp=when)], timestamp=when))
    if response:
        messages.append(ModelResponse(parts=[TextPart(response)], timestamp=when))
    return messages


def _model_dicts(turn: ConversationTurn) -> list[Any]:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return list(ModelMessagesTypeAdapter.dump_python(texts_as_messages(turn), mode="json"))
