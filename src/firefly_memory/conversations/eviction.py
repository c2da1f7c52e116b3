"""Evicts turns from the window: a summary replaces the oldest turns, each of them once, whichever process does it.

The policy decides when and which turns (:mod:`~firefly_memory.conversations.policy`). This module evicts them: under a
claim, in one step, and a failure loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from firefly_memory import clock
from firefly_memory.conversations.log import ConversationLog, Head, StoredTurn
from firefly_memory.conversations.policy import EvictionPolicy
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.errors import ConflictError
from firefly_memory.identifiers import new_entry_id, original_name, stored_text

LEASE = timedelta(minutes=10)
"""The time for a summarizer. After it another writer may try, because the first process may have died."""

_FEW, _PAGE = 50, 500

Decode = Callable[[StoredTurn], ConversationTurn]


async def evict(log: ConversationLog, name: str, policy: EvictionPolicy, decode: Decode) -> None:
    """Evict the oldest turns of a conversation, if ``policy`` says so and no other writer does it now."""
    claim, now = new_entry_id(), clock.now()
    head = await _due(log, name, policy)
    if head is None or not await log.claim(name, claim, head.evicted_turns, now, now + LEASE):
        return
    try:
        head = await _due(log, name, policy)  # before the claim, it may have been deleted and created anew
        done = head is not None and await _evict(log, name, policy, decode, head, claim)
    except BaseException:
        await log.release(name, claim)
        raise
    if not done:
        await log.release(name, claim)


async def _due(log: ConversationLog, name: str, policy: EvictionPolicy) -> Head | None:
    """The head of a conversation, if its oldest turns must be evicted."""
    head = await log.head(name)
    if head is None or not policy.is_due(head.live_tokens):
        return None
    return head if head.turns - head.evicted_turns > 1 else None  # the newest turn is never evicted


async def _evict(
    log: ConversationLog, name: str, policy: EvictionPolicy, decode: Decode, head: Head, claim: str
) -> bool:
    turns = await _oldest(log, name, decode, head, policy.tokens_wanted(head.live_tokens))
    if not turns:
        return False  # it has been deleted since
    newest_is_among_them = turns[-1].turn_id == head.turns - 1
    count = policy.how_many(turns, len(turns) - newest_is_among_them, head.live_tokens)
    if count == 0:
        return False
    evicted = turns[:count]
    given = list(evicted)
    if head.summary is not None:
        given.insert(0, ConversationTurn.of_summary(original_name(head.summary), turns[0].created_at))
    summary = await policy.replace(given)
    if not isinstance(summary, str) or not summary.strip():
        raise TypeError(f"the summarizer returned {summary!r} instead of text")
    tokens = head.evicted_tokens + sum(turn.token_estimate for turn in evicted)
    return await log.evict(name, claim, stored_text(summary), head.evicted_turns + count, tokens)


async def _oldest(log: ConversationLog, name: str, decode: Decode, head: Head, tokens: int) -> list[ConversationTurn]:
    """The oldest turns that are not evicted, as many as have ``tokens`` together, and a few more."""
    turns: list[ConversationTurn] = []
    while sum(turn.token_estimate for turn in turns) <= tokens:
        page = await log.turns(name, head.evicted_turns - 1 + len(turns), _FEW)
        turns += [decode(turn) for turn in page]
        if len(page) < _FEW:
            break
    return turns


async def replace_summary(log: ConversationLog, name: str, summary: str, turns: int) -> None:
    """Replace the first ``turns`` turns by ``summary`` in the window."""
    head = await log.head(name)
    if head is None or (head.summary is not None and head.evicted_turns >= turns):
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
    await log.evict(name, claim, stored_text(summary), turns, tokens)
