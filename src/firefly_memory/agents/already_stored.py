"""Finds the messages of a run that the conversation already has, so that nothing is stored twice.

A run that is repeated with its id may have stored some messages before it was interrupted. A ``message_history`` that
ends with a request, as user interfaces send it, may repeat a stored request that got no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart

from firefly_memory.agents.refusals import FINAL, NOT_EXECUTED, NOT_USED
from firefly_memory.conversations.types import ConversationTurn


def turns_of_run(turns: Sequence[ConversationTurn], run_id: str | None, prompt: str) -> Sequence[ConversationTurn]:
    """All turns from the first turn on that an earlier attempt at the run has stored.

    A run with another prompt is another run with a reused id.
    """
    for number, turn in enumerate(turns):
        if _is_of_run(turn, run_id):
            return turns[number:] if turn.user_prompt == prompt else ()
    return ()


def said_by_run(turns: Sequence[ConversationTurn], run_id: str | None) -> list[ModelMessage]:
    """The messages of the run at the end of a conversation; none, if other runs have added turns since."""
    return _messages(turns) if all(_is_of_run(turn, run_id) for turn in turns) else []


def has_ended(turns: Sequence[ConversationTurn], run_id: str | None) -> bool:
    """Whether one of the turns was stored when the run had ended normally."""
    return any(_is_of_run(turn, run_id) and _is_whole(turn.raw_messages[-1]) for turn in turns)


def unanswered(turns: Sequence[ConversationTurn]) -> list[ModelMessage]:
    """The unanswered requests at the end of a conversation."""
    requests: list[ModelMessage] = []
    for turn in reversed(turns):
        for message in reversed(turn.raw_messages):
            if isinstance(message, ModelRequest):
                requests.insert(0, message)
            elif not _is_silent(message):
                return requests
        if not turn.raw_messages:  # its texts are an answer
            return requests
    return requests


def beyond(messages: Sequence[ModelMessage], stored: Sequence[ModelMessage]) -> list[ModelMessage]:
    """``messages`` without those at the start that equal the ``stored`` ones; timestamps may differ."""
    known = 0
    while known < min(len(messages), len(stored)) and _same(messages[known], stored[known]):
        known += 1
    rest = list(messages[known:])
    if rest and isinstance(rest[0], ModelRequest):
        there = [part for message in stored[known:] if isinstance(message, ModelRequest) for part in message.parts]
        parts = _without(rest[0].parts, there)
        rest[:1] = [replace(rest[0], parts=parts)] if parts or not rest[0].parts else []
    return rest


def _is_of_run(turn: ConversationTurn, run_id: str | None) -> bool:
    return run_id is not None and any(getattr(message, "run_id", None) == run_id for message in turn.raw_messages)


def _is_silent(message: Any) -> bool:
    """Whether the message is the empty response of a stream that was interrupted at once."""
    return isinstance(message, ModelResponse) and message.state == "interrupted" and not message.parts


def _is_whole(last: ModelMessage) -> bool:
    """Whether the run ended normally, with a complete response or a request that has a final result."""
    if isinstance(last, ModelResponse):
        return last.state != "interrupted"
    return any(getattr(part, "content", None) in (FINAL, NOT_USED, NOT_EXECUTED) for part in last.parts)


def _messages(turns: Iterable[ConversationTurn]) -> list[ModelMessage]:
    return [message for turn in turns for message in turn.raw_messages]


def _same(one: ModelMessage, other: ModelMessage) -> bool:
    if type(one) is not type(other) or len(one.parts) != len(other.parts):
        return False
    if isinstance(one, ModelResponse) and isinstance(other, ModelResponse) and one.state != other.state:
        return False
    return all(_same_part(*pair) for pair in zip(one.parts, other.parts, strict=True))


def _same_part(one: Any, other: Any) -> bool:
    if isinstance(one, ToolReturnPart) and isinstance(other, ToolReturnPart):
        return one.tool_call_id == other.tool_call_id  # a call has one result
    return bool(_timeless(one) == _timeless(other))


def _timeless(part: Any) -> Any:
    changes: dict[str, Any] = {"timestamp": None}
    return replace(part, **changes) if hasattr(part, "timestamp") else part


def _without(parts: Sequence[Any], there: list[Any]) -> list[Any]:
    """``parts`` without one equal part for each part in ``there``."""
    left, kept = list(there), []
    for part in parts:
        found = next((each for each in left if _same_part(part, each)), None)
        if found is None:
            kept.append(part)
        else:
            left.remove(found)
    return kept
