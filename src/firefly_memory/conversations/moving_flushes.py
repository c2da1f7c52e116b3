"""The flushes of a conversation on their way from one store to another.

They are made again, one after the other, so that the copy can restore what they took out of the window. A copy has no
dropped turns, and so it has no flush of nothing but such turns. What left the window before the first flush that is
made again, by an earlier version or an import, is one flush of the kind ``import`` in the copy: it counts as the state
from which the copy begins, and archives do not list it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, NamedTuple

from firefly_memory import clock
from firefly_memory.clock import instant_of
from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.conversations.flushing import IMPORT, LEASE, flush_from, marks_of
from firefly_memory.conversations.log import CONVERSATION_LOG, ConversationLog, Flush, Flushed, Head
from firefly_memory.errors import ConflictError
from firefly_memory.identifiers import new_entry_id, original_name, original_or_none, stored_name, stored_text
from firefly_memory.moving import Item, Placed, Walk
from firefly_memory.validation import checked_text, checked_whole_number

_PAGE = 500
_REMEMBERED = "conversations"

State = tuple[int, str | None]
"""How many turns are out of the window, and the summary."""


class Replay(NamedTuple):
    """What a copy makes again."""

    flush_ids: tuple[str, ...]
    """The oldest first."""
    before: State
    """The state before the first of them, or that of the conversation."""


async def replay_of(log: ConversationLog, head: Head) -> Replay:
    """The flushes of a conversation that are in force."""
    flush_ids: dict[str, None] = {}
    turns, summary, flush_id = head.evicted_turns, head.summary, head.flush_id
    while flush_id is not None and flush_id not in flush_ids:
        flush = await log.find_flush(head.conversation_id, flush_id)
        if flush is None or flush.turns <= head.dropped_turns or _is_base(flush):
            break
        flush_ids[flush_id] = None
        turns, summary, flush_id = flush.turns_before, flush.summary_before, flush.previous
    return Replay(tuple(flush_ids)[::-1], (max(turns - head.dropped_turns, 0), original_or_none(summary)))


def _is_base(flush: Flush) -> bool:
    return flush.strategy == IMPORT and flush.previous is None


async def described(walk: Walk, head: Head) -> Item:
    """What the item of a conversation says of its flushes, which :func:`flushes_of` has next."""
    replay = await replay_of(walk.view.log(CONVERSATION_LOG), head)
    walk.remembered.setdefault(_REMEMBERED, {})[head.conversation_id] = replay
    item: Item = {}
    if head.marks is not None:
        item["marks"] = {place: max(turns - head.dropped_turns, 0) for place, turns in marks_of(head).items()}
    if replay.flush_ids and replay.before != (0, None):
        item["before_flushes"] = {"turns": replay.before[0], "summary": replay.before[1]}
    return item


async def flushes_of(walk: Walk, conversation: Item) -> Placed:
    """The flushes of a conversation, counted from 0, the oldest first."""
    name = stored_name("conversation_id", conversation["conversation_id"])
    log = walk.view.log(CONVERSATION_LOG)
    replay: Replay = walk.remembered[_REMEMBERED].pop(name)
    number, earlier = 0, None
    for flush_id in replay.flush_ids:
        flush = await log.find_flush(name, flush_id)
        if flush is None:
            return  # the conversation was deleted since
        if earlier is not None:
            yield number, _item(log, conversation, earlier, original_or_none(flush.summary_before))
            number += 1
        earlier = flush
    if earlier is not None:
        yield number, _item(log, conversation, earlier, conversation["summary"])


async def are_there(walk: Walk) -> bool:
    """Whether a conversation of the store has a flush that a copy makes again."""
    log = walk.view.log(CONVERSATION_LOG)
    async for head in _heads(log):
        if head.flush_id is not None and (await replay_of(log, head)).flush_ids:
            return True
    return False


async def _heads(log: ConversationLog) -> AsyncIterator[Head]:
    after: tuple[datetime, str] | None = None
    while page := await log.page(_PAGE, after):
        for head in page:
            yield head
        after = log.read_instant(page[-1].created_at), page[-1].conversation_id


def _item(log: ConversationLog, conversation: Item, flush: Flush, summary: str | None) -> Item:
    return {
        "conversation_id": conversation["conversation_id"],
        "flush_id": original_name(flush.flush_id),
        "strategy": original_name(flush.strategy),
        "turns": flush.turns - conversation.get("dropped_turns", 0),
        "summary": summary,
        "created_at": _made_at(log, conversation, flush).isoformat(),
    }


def _made_at(log: ConversationLog, conversation: Item, flush: Flush) -> datetime:
    try:
        return log.read_instant(flush.created_at)
    except DAMAGE as exc:
        where = f"flush {flush.flush_id!r} of conversation {conversation['conversation_id']!r}"
        raise damaged("reading a conversation", where, exc) from exc


def without_flush(item: Item, untrusted: bool) -> tuple[Item, int]:
    """Leave out a flush of an untrusted archive, because its summary speaks as the system."""
    return ({**item, "flush_id": None} if untrusted else item), 0


class FlushWriter:
    """Makes the flushes of one conversation again, after its turns were written. What is there already stays."""

    def __init__(self, log: ConversationLog, conversation: Item) -> None:
        self._log = log
        self._conversation = conversation
        self._name = stored_name("conversation_id", conversation["conversation_id"])
        self._marks = _marks_from(conversation.get("marks"))
        self._state: State = (0, None)
        self._has_begun = False

    async def take(self, item: Item, turns: int, *, there: bool) -> None:
        """Make a flush again, which may be ``there``. The conversation has so many ``turns``."""
        if item["flush_id"] is None:
            return
        if not self._has_begun:
            before = self._conversation.get("before_flushes", {"turns": 0, "summary": None})
            await self._begin(_state_from(before, 0, turns), there=there)
        flush_id, strategy = stored_name("flush_id", item["flush_id"]), stored_name("strategy", item["strategy"])
        after = _state_from(item, self._state[0], turns)
        created_at = instant_of(item["created_at"])
        if not there:
            await self._flush(flush_id, strategy, after, created_at)
        self._state = after

    async def finish(self, turns: int) -> None:
        """See to the state that the conversation has at the end."""
        item = self._conversation
        last = _state_from({"turns": item["summarized_turns"], "summary": item["summary"]}, 0, turns)
        if not self._has_begun:
            await self._begin(last, there=False)
        if self._state != last:
            raise ValueError("the conversation has another summary, or of other turns, than its last flush")

    async def _begin(self, state: State, *, there: bool) -> None:
        self._has_begun = True
        if state != (0, None) and not there:
            await self._flush(new_entry_id(), IMPORT, state, clock.now())
        self._state = state

    async def _flush(self, flush_id: str, strategy: str, after: State, created_at: datetime) -> None:
        head = await self._log.head(self._name)
        if head is None or (head.evicted_turns, original_or_none(head.summary)) != self._state:
            return  # it has been done already, or others have flushed since
        if await self._is_in_force(head, flush_id):
            return
        turns, summary = after
        tokens = head.evicted_tokens + await self._tokens(head.evicted_turns, turns)
        text = None if summary is None else stored_text(summary)
        now = clock.now()
        if not await self._log.claim(self._name, flush_id, head.evicted_turns, now, now + LEASE):
            name = original_name(self._name)
            raise ConflictError(f"a summary of conversation {name!r} is being made; try again later")
        marks = head.marks if self._marks is None else self._marks
        flushed = Flushed(turns, tokens, text, head.dropped_turns, marks)
        await self._log.flush(self._name, flush_from(head, flush_id, strategy, turns, created_at), flushed)

    async def _is_in_force(self, head: Head, flush_id: str) -> bool:
        """Whether the chain has the flush already, where a second one of its id would close a circle."""
        if await self._log.find_flush(self._name, flush_id) is None:
            return False
        return flush_id == head.flush_id or flush_id in (await replay_of(self._log, head)).flush_ids

    async def _tokens(self, first: int, beyond: int) -> int:
        """The tokens of the turns from ``first`` on, before number ``beyond``."""
        tokens = 0
        while first < beyond:
            page = await self._log.turns(self._name, first - 1, min(_PAGE, beyond - first))
            if not page:
                break  # it has been deleted since
            tokens += sum(turn.tokens for turn in page)
            first += len(page)
        return tokens


def _state_from(item: Item, least: int, most: int) -> State:
    turns = checked_whole_number("turns", item["turns"], least)
    if turns > most:
        raise ValueError(f"{turns} turns cannot be out of the window of a conversation that has {most}")
    return turns, None if item["summary"] is None else checked_text("summary", item["summary"])


def _marks_from(marks: Any) -> str | None:
    if marks is None:
        return None
    return json.dumps({place: checked_whole_number("marks", turns, 0) for place, turns in dict(marks).items()})
