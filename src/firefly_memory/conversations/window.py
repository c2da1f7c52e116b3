"""The replayed part of a conversation: the summary, and the newest whole turns that fit a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from firefly_memory.conversations.log import Head, StoredTurn
from firefly_memory.conversations.policy import ShortTerm
from firefly_memory.conversations.replay import replayed
from firefly_memory.conversations.types import ConversationTurn, Window
from firefly_memory.identifiers import original_name
from firefly_memory.messages.storage import recalled_text, summary_text
from firefly_memory.messages.tool_links import first_whole, links_of, without_orphans
from firefly_memory.tokens.estimator import TokenEstimator

Decode = Callable[[StoredTurn], ConversationTurn]

_ANY_TIME = datetime.min.replace(tzinfo=UTC)


class Making(NamedTuple):
    """How a window is made."""

    budget: int
    estimator: TokenEstimator
    short_term: Sequence[ShortTerm]
    decode: Decode


def window_of(head: Head, stored: Sequence[StoredTurn], recalled: Sequence[str], making: Making) -> Window:
    """The window of the newest turns, which fit the budget if there is nothing beside them."""
    left_out: list[str] = []
    summary = None if head.summary is None else original_name(head.summary)
    beside, room = _beside(summary, recalled, stored, making, left_out)
    turns = [making.decode(turn) for turn in _newest(stored, room)]
    if head.evicted_turns:
        why = "that were erased" if summary is None else "that the summary stands for"
        left_out.append(f"{head.evicted_turns} turns {why}")
    beyond = head.turns - head.evicted_turns - len(turns)
    if beyond:
        left_out.append(f"{beyond} turns before turn {head.turns - len(turns)}, for which there is no room")
    whole = _whole(turns, some_are_missing=beyond > 0)
    if len(whole) < len(turns):
        left_out.append(f"{len(turns) - len(whole)} turns that go with calls which are not in the window")
    sent = _selected(whole, making, left_out)
    when = sent[0].created_at if sent else _ANY_TIME  # always the same for a window
    in_front = [replace(turn, created_at=when) for turn in beside]
    return Window(
        original_name(head.conversation_id),
        budget=making.budget,
        messages=replayed(sent, in_front),
        turns=tuple(turn.turn_id for turn in sent),
        tokens=sum(turn.token_estimate for turn in sent) + making.budget - room,
        summary=summary,
        recalled=next((turn.assistant_response for turn in beside if turn.is_recalled), None),
        total_turns=head.turns,
        left_out=tuple(left_out),
        replayed=(*in_front, *sent),
        unfiltered=tuple(whole),
    )


def _beside(
    summary: str | None, recalled: Sequence[str], turns: Sequence[StoredTurn], making: Making, left_out: list[str]
) -> tuple[list[ConversationTurn], int]:
    """The summary and what was recalled, as turns, as far as they fit beside the newest turn; and the tokens left."""
    newest = turns[-1].tokens if turns else 0
    room, shown = making.budget, []
    if summary is not None:
        tokens = making.estimator.estimate_turn("", summary_text(summary), ())
        if tokens + newest <= room:
            shown.append(ConversationTurn.of_summary(summary, _ANY_TIME))
            room -= tokens
        else:
            left_out.append(f"the summary, whose {tokens} tokens have no room beside the newest turn's {newest}")
    for count in range(len(recalled), 0, -1):  # the best first, as many as fit
        text = recalled_text(recalled[:count])
        tokens = making.estimator.estimate_turn("", text, ())
        if tokens + newest <= room:
            return [*shown, ConversationTurn.of_recalled(text, _ANY_TIME)], room - tokens
    if recalled:
        left_out.append("what was found in memory, for which there is no room beside the newest turn")
    return shown, room


def _newest(stored: Sequence[StoredTurn], room: int) -> Sequence[StoredTurn]:
    """The newest turns that fit."""
    tokens = sum(turn.tokens for turn in stored)
    start = 0
    while tokens > room:
        tokens -= stored[start].tokens
        start += 1
    return stored[start:]


def _whole(turns: Sequence[ConversationTurn], *, some_are_missing: bool) -> Sequence[ConversationTurn]:
    """The turns without results whose calls are missing."""
    messages = [turn.raw_messages for turn in turns]
    if some_are_missing:  # a call may be among them: what lies between it and its result goes with it
        return turns[first_whole(messages) :]
    if not links_of(messages).orphans:
        return turns
    left = zip(turns, without_orphans(messages), strict=True)  # their calls were evicted, or never were
    return [replace(turn, raw_messages=own) for turn, own in left if own or not turn.raw_messages]


def _selected(turns: Sequence[ConversationTurn], making: Making, left_out: list[str]) -> Sequence[ConversationTurn]:
    """What the strategies leave of the turns."""
    for strategy in making.short_term:
        kept = strategy.select(turns, making.estimator)
        shorter = sum(turn.token_estimate for turn in turns) - sum(turn.token_estimate for turn in kept)
        if shorter:
            left_out.append(f"{shorter} tokens of turns, by the strategy {type(strategy).__name__}")
        turns = kept
    return turns
