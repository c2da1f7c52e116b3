"""The window of a conversation, as a run of an agent can use it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firefly_memory.agents.turn_of_run import is_model_message
from firefly_memory.conversation import ConversationMemory
from firefly_memory.errors import InvalidEntryError
from firefly_memory.messages import links_of, texts_as_messages
from firefly_memory.turns import ConversationTurn, Window


async def load_window(conversation: ConversationMemory, conversation_id: Any, max_tokens: int | None) -> Window:
    """The window; a paused turn, whose calls may be about to be answered, is in it whatever its budget is."""
    if not isinstance(conversation_id, str):
        raise InvalidEntryError("conversation_id", f"must be text, not {type(conversation_id).__name__}")
    try:
        conversation_id.encode()
    except UnicodeEncodeError as exc:
        reason = "has a lone surrogate, which pydantic-ai cannot write into messages"
        raise InvalidEntryError("conversation_id", reason) from exc
    window = await conversation.async_get_window(conversation_id, max_tokens)
    if not window.turns and window.total_turns:
        newest = await conversation.async_get_turns(conversation_id, limit=1, after=window.total_turns - 2)
        if any(links_of([turn.raw_messages]).open_calls for turn in newest):
            return replace(window, messages=_replayed(window, newest))
    if not all(map(is_model_message, window.messages)):
        before_first = window.turns[0] - 1
        turns = await conversation.async_get_turns(conversation_id, limit=len(window.turns), after=before_first)
        return replace(window, messages=_replayed(window, turns))
    return window


def _replayed(window: Window, turns: list[ConversationTurn]) -> list[Any]:
    """The messages of ``turns``, or, where these are none of pydantic-ai's, what their texts say."""
    messages: list[Any] = []
    if window.summary is not None and turns:
        messages += texts_as_messages(ConversationTurn.of_summary(window.summary, turns[0].created_at))
    for turn in turns:
        own = turn.raw_messages
        messages += own if own and all(map(is_model_message, own)) else texts_as_messages(turn)
    return messages
