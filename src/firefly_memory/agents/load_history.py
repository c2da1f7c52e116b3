"""The window of a conversation, as a run of an agent can use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic_ai.messages import ModelMessage

from firefly_memory.agents.already_stored import has_ended, said_by_run, turns_of_run, unanswered
from firefly_memory.agents.run_messages import is_model_message
from firefly_memory.conversations.memory import ConversationMemory
from firefly_memory.conversations.replay import texts_as_messages
from firefly_memory.conversations.types import ConversationTurn, Window
from firefly_memory.errors import InvalidEntryError
from firefly_memory.messages.tool_links import links_of, without_orphans
from firefly_memory.validation import checked_text


class Loaded(NamedTuple):
    """What a run begins with."""

    window: Window
    is_repeated: bool = False
    """Whether an earlier attempt at the same run has stored a turn."""
    has_ended: bool = False
    """Whether an earlier attempt at the same run has ended normally."""
    said_before: Sequence[ModelMessage] = ()
    """The messages of that turn, if it is the last turn of the conversation; the window omits them."""
    unanswered: Sequence[ModelMessage] = ()
    """The unanswered requests at the end of the conversation."""


async def load_window(
    conversation: ConversationMemory,
    conversation_id: Any,
    max_tokens: int | None,
    run_id: str | None,
    prompt: str,
    owner: str | None,
) -> Loaded:
    """Load the window, without the turns that an earlier attempt at this run has stored.

    The window always contains a paused newest turn, whatever the budget is: this run may answer its tool calls.
    """
    try:
        checked_text("conversation_id", conversation_id).encode()
    except UnicodeEncodeError as exc:
        reason = "has a lone surrogate, which pydantic-ai cannot write into messages"
        raise InvalidEntryError("conversation_id", reason) from exc
    window = await conversation.async_get_window(conversation_id, max_tokens, owner=owner, prompt=prompt)
    tried = turns_of_run(window.unfiltered, run_id, prompt)
    if tried:
        room = window.budget + sum(turn.token_estimate for turn in tried)
        window = await conversation.async_get_window(conversation_id, room, owner=owner, prompt=prompt)
        tried = turns_of_run(window.unfiltered, run_id, prompt)
    newest = await _newest(conversation, window)
    turns = _with_paused(window.replayed, newest)
    were_tried = {turn.turn_id for turn in tried}
    messages = [message for turn in turns if turn.turn_id not in were_tried for message in _messages(turn)]
    shown = replace(window, messages=messages)
    open_requests = unanswered(window.unfiltered) if newest and window.unfiltered else ()
    return Loaded(shown, bool(tried), has_ended(tried, run_id), said_by_run(tried, run_id), open_requests)


async def _newest(conversation: ConversationMemory, window: Window) -> ConversationTurn | None:
    """The newest turn of the conversation, also if the window has no turn."""
    if window.unfiltered or not window.total_turns:
        return next((turn for turn in window.unfiltered[-1:] if turn.turn_id == window.total_turns - 1), None)
    stored = await conversation.async_get_turns(window.conversation_id, limit=1, after=window.total_turns - 2)
    return stored[0] if stored else None


def _with_paused(turns: Sequence[ConversationTurn], newest: ConversationTurn | None) -> Sequence[ConversationTurn]:
    """The turns of a window, with the whole ``newest`` turn if it waits for the results of its tool calls. It may begin
    with the result of an earlier call, which stays only with this call."""
    if newest is None or not links_of([newest.raw_messages]).open_calls:
        return turns
    others = [turn for turn in turns if turn.turn_id != newest.turn_id]
    messages = without_orphans([*(turn.raw_messages for turn in others), newest.raw_messages])
    return [*others, replace(newest, raw_messages=messages[-1])]


def _messages(turn: ConversationTurn) -> list[Any]:
    """The messages of the turn; or its two texts as messages, if the turn has messages of another library."""
    own = turn.raw_messages
    return own if own and all(map(is_model_message, own)) else texts_as_messages(turn)
