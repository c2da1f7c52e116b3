"""Flushes turns: the oldest turns leave the window, each of them once, whichever process does it.

The strategy decides when and which turns (:mod:`~firefly_memory.conversations.policy`). This module takes them out:
under a claim, in one step, and a failure loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from firefly_memory import clock
from firefly_memory.codec import damaged
from firefly_memory.conversations.log import ConversationLog, Flush, Flushed, Head, StoredTurn
from firefly_memory.conversations.policy import Conversation, Live, LongTerm, Sizes
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.errors import ConflictError
from firefly_memory.identifiers import new_entry_id, original_name, stored_text
from firefly_memory.reprs import shown
from firefly_memory.tokens.estimator import TokenEstimator

LEASE = timedelta(minutes=10)
"""The time for a strategy. After it another writer may try, because the first process may have died."""

IMPORT = "import"
"""The kind of the flush by which an import gives a conversation its summary."""

_FEW, _PAGE = 50, 500

Decode = Callable[[StoredTurn], ConversationTurn]

About = Callable[[str, Head | None, str | None], Conversation]
"""Makes the conversation that a strategy sees: from its id, its head, and the owner that the caller names."""


@dataclass(frozen=True, slots=True)
class Flusher:
    """Does what the strategies of a memory decide."""

    log: ConversationLog
    strategies: Sequence[LongTerm]
    estimator: TokenEstimator
    about: About

    def is_due(self, sizes: Sizes) -> bool:
        """Whether a strategy may have something to do."""
        return any(strategy.may_be_due(sizes) for strategy in self.strategies)

    async def flush(self, name: str, decode: Decode, input_tokens: int | None = None) -> None:
        """Ask one strategy after the other. ``input_tokens`` is what the newest turn reports, as far as it is known."""
        for place, strategy in enumerate(self.strategies):
            await self._ask(name, place, strategy, decode, input_tokens)

    async def _ask(self, name: str, place: int, strategy: LongTerm, decode: Decode, input_tokens: int | None) -> None:
        seen = await self._due(name, strategy, input_tokens)
        if seen is None:
            return
        live = await self._live(name, seen, place, strategy, decode)
        if strategy.how_many(live) == 0:
            return
        claim, now = new_entry_id(), clock.now()
        if not await self.log.claim(name, claim, seen.evicted_turns, now, now + LEASE):
            return
        try:
            head = await self._due(name, strategy, None)
            if head is not None and head != seen:  # it may have been deleted and created anew before the claim
                live = await self._live(name, head, place, strategy, decode)
            done = head is not None and await self._flush(name, place, strategy, live, head, claim)
        except BaseException:
            await self.log.release(name, claim)
            raise
        if not done:
            await self.log.release(name, claim)

    async def _due(self, name: str, strategy: LongTerm, input_tokens: int | None) -> Head | None:
        """The head of a conversation, if turns may have to leave its window."""
        head = await self.log.head(name)
        if head is None or not head.live_turns or not strategy.may_be_due(_sizes(head, input_tokens)):
            return None
        return head

    async def _flush(self, name: str, place: int, strategy: LongTerm, live: Live, head: Head, claim: str) -> bool:
        count = strategy.how_many(live)
        if count == 0:
            return False
        gone = list(live.turns[:count])
        given = list(gone)
        if head.summary is not None:
            given.insert(0, ConversationTurn.of_summary(original_name(head.summary), gone[0].created_at))
        conversation = self.about(name, head, None)
        summary = _checked(await strategy.replacement(given, conversation, claim))
        turns = head.evicted_turns + count
        after = Flushed(
            evicted_turns=turns,
            evicted_tokens=head.evicted_tokens + sum(turn.token_estimate for turn in gone),
            summary=None if summary is None else stored_text(summary),
            dropped_turns=turns if strategy.deletes else head.dropped_turns,
            marks=_marked(head, place),
        )
        done = await self.log.flush(name, flush_from(head, claim, strategy.kind, turns, clock.now()), after)
        if not done and not _is_same(head, await self.log.head(name)):
            await strategy.forget(conversation)
        return done

    async def _live(self, name: str, head: Head, place: int, strategy: LongTerm, decode: Decode) -> Live:
        """The oldest turns of the window, as many as the strategy wants, and a few more."""
        sizes = _sizes(head, None)
        wanted = strategy.tokens_wanted(sizes)
        turns: list[ConversationTurn] = []
        tokens = 0
        while tokens <= wanted and len(turns) < head.live_turns:
            size = min(_FEW if not turns else _PAGE, head.live_turns - len(turns))
            page = await self.log.turns(name, head.evicted_turns - 1 + len(turns), size)
            turns += [decode(turn) for turn in page]
            tokens += sum(turn.tokens for turn in page)
            if len(page) < size:
                break  # it has been deleted since
        return Live(turns, sizes, marks_of(head).get(str(place), 0), self.estimator)


def _checked(summary: object) -> str | None:
    if summary is None or (isinstance(summary, str) and summary.strip()):
        return summary
    raise TypeError(f"the strategy returned {shown(summary)} instead of text or None")


def _is_same(head: Head, now: Head | None) -> bool:
    """Whether the conversation was not deleted since, and perhaps created anew."""
    return now is not None and now.created_at == head.created_at


def _sizes(head: Head, input_tokens: int | None) -> Sizes:
    return Sizes(head.live_turns, head.live_tokens, input_tokens)


def marks_of(head: Head) -> Mapping[str, int]:
    """How many turns there were when each strategy last ran."""
    if head.marks is None:
        return {}
    try:
        marks = json.loads(head.marks)
        return {str(place): int(turns) for place, turns in marks.items()}
    except (AttributeError, TypeError, ValueError) as exc:
        raise damaged("reading a conversation", f"the marks of {head.conversation_id!r}", exc) from exc


def _marked(head: Head, place: int) -> str:
    return json.dumps({**marks_of(head), str(place): head.turns})


def flush_from(head: Head, flush_id: str, strategy: str, turns: int, now: datetime) -> Flush:
    """The flush that takes the first ``turns`` turns out of a window that is as ``head`` says."""
    return Flush(
        flush_id=flush_id,
        previous=head.flush_id,
        strategy=strategy,
        turns=turns,
        turns_before=head.evicted_turns,
        tokens_before=head.evicted_tokens,
        summary_before=head.summary,
        created_at=now,
    )


async def replace_summary(log: ConversationLog, name: str, summary: str | None, turns: int) -> None:
    """Replace the first ``turns`` turns by ``summary`` in the window."""
    head = await log.head(name)
    if head is None or (head.evicted_turns and head.evicted_turns >= turns):
        return  # it has been summarized further since
    tokens, after = head.evicted_tokens, head.evicted_turns - 1
    while after < turns - 1:
        page = await log.turns(name, after, min(_PAGE, turns - 1 - after))
        if not page:
            return  # it has been deleted since
        tokens += sum(turn.tokens for turn in page)
        after += len(page)
    claim, now = new_entry_id(), clock.now()
    if not await log.claim(name, claim, head.evicted_turns, now, now + LEASE):
        raise ConflictError(f"a summary of conversation {original_name(name)!r} is being made; try again later")
    text = None if summary is None else stored_text(summary)
    flushed = Flushed(turns, tokens, text, head.dropped_turns, head.marks)
    await log.flush(name, flush_from(head, claim, IMPORT, turns, now), flushed)
