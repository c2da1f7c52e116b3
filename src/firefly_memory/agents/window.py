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
    turns = list(window.replayed)
    if not window.turns and window.total_turns:
        newest = await conversation.async_get_turns(conversation_id, limit=1, after=window.total_turns - 2)
        if any(links_of([turn.raw_messages]).open_calls for turn in newest):
            turns += newest
    return replace(window, messages=[message for turn in turns for message in _messages(turn)])


def _messages(turn: ConversationTurn) -> list[Any]:
    """Those of the turn, or, where these are none of pydantic-ai's, what its texts say."""
    own = turn.raw_messages
    return own if own and all(map(is_model_message, own)) else texts_as_messages(turn)
