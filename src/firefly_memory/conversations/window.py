"""The replayed part of a conversation: the summary, and the newest whole turns that fit a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from firefly_memory.conversations.log import Head, StoredTurn
from firefly_memory.conversations.replay import replayed
from firefly_memory.conversations.types import ConversationTurn, Window
from firefly_memory.identifiers import original_name
from firefly_memory.messages.storage import summary_text
from firefly_memory.messages.tool_links import first_whole, links_of, without_orphans
from firefly_memory.tokens.estimator import TokenEstimator

Decode = Callable[[StoredTurn], ConversationTurn]


def window_of(
    head: Head, stored: Sequence[StoredTurn], budget: int, estimator: TokenEstimator, decode: Decode
) -> Window:
    """The window of the newest turns, which fit ``budget`` if there is no summary."""
    left_out: list[str] = []
    summary = None if head.summary is None else original_name(head.summary)
    shown, room = _room_beside(summary, stored, budget, estimator, left_out)
    turns = [decode(turn) for turn in _newest(stored, room)]
    if head.evicted_turns:
        left_out.append(f"{head.evicted_turns} turns that the summary stands for")
    beyond = head.turns - head.evicted_turns - len(turns)
    if beyond:
        left_out.append(f"{beyond} turns before turn {head.turns - len(turns)}, for which there is no room")
    whole = _whole(turns, some_are_missing=beyond > 0)
    if len(whole) < len(turns):
        left_out.append(f"{len(turns) - len(whole)} turns that go with calls which are not in the window")
    summary_turn = None if shown is None else _as_turn(shown, whole)
    return Window(
        original_name(head.conversation_id),
        budget=budget,
        messages=replayed(whole, summary_turn),
        turns=tuple(turn.turn_id for turn in whole),
        tokens=sum(turn.token_estimate for turn in whole) + budget - room,
        summary=summary,
        total_turns=head.turns,
        left_out=tuple(left_out),
        replayed=(*whole,) if summary_turn is None else (summary_turn, *whole),
    )


def _room_beside(
    summary: str | None, turns: Sequence[StoredTurn], budget: int, estimator: TokenEstimator, left_out: list[str]
) -> tuple[str | None, int]:
    """The summary, if it fits beside the newest turn, and the tokens left for turns."""
    if summary is None:
        return None, budget
    tokens = estimator.estimate_turn("", summary_text(summary), ())
    newest = turns[-1].tokens if turns else 0
    if tokens + newest <= budget:
        return summary, budget - tokens
    left_out.append(f"the summary, whose {tokens} tokens have no room beside the newest turn's {newest}")
    return None, budget


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


def _as_turn(summary: str, turns: Sequence[ConversationTurn]) -> ConversationTurn:
    """The summary as the turn before the others, always with the same time."""
    when = turns[0].created_at if turns else datetime.min.replace(tzinfo=UTC)
    return ConversationTurn.of_summary(summary, when)
