"""Flushes for tests, made and read without a ``ConversationMemory``."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from firefly_memory import EntryStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.log import CONVERSATION_LOG, Flush, Flushed, Head
from firefly_memory.identifiers import new_entry_id, stored_text
from tests.support.turns import NOW

MINUTE = timedelta(minutes=1)


def flush_of(
    head: Head, turns: int, tokens: int, summary: str | None, *, drops: bool = False, marks: str | None = None
) -> tuple[Flush, Flushed]:
    """The flush by which a conversation that is as ``head`` says has ``turns`` turns out of its window."""
    before = head.evicted_turns, head.evicted_tokens, head.summary
    flush = Flush(new_entry_id(), head.flush_id, "test", turns, *before, NOW)
    text = None if summary is None else stored_text(summary)
    return flush, Flushed(turns, tokens, text, turns if drops else head.dropped_turns, marks)


def make_flush(
    store: EntryStore,
    conversation: str,
    turns: int,
    summary: str | None,
    *,
    drops: bool = False,
    marks: str | None = None,
    at: datetime = NOW,
) -> str:
    """Take the first ``turns`` turns out of the window; the id of the flush."""
    log: Any = store.blocking.log(CONVERSATION_LOG)
    name = stored_text(conversation)
    head = run_without_loop(log.head(name))
    page = run_without_loop(log.turns(name, head.evicted_turns - 1, turns - head.evicted_turns))
    tokens = head.evicted_tokens + sum(turn.tokens for turn in page)
    flush, after = flush_of(head, turns, tokens, summary, drops=drops, marks=marks)
    assert run_without_loop(log.claim(name, flush.flush_id, head.evicted_turns, NOW, NOW + MINUTE))
    assert run_without_loop(log.flush(name, flush._replace(created_at=at), after))
    return flush.flush_id


def chain_of(store: EntryStore, conversation: str) -> list[Flush]:
    """The flushes in force, the newest first."""
    log: Any = store.blocking.log(CONVERSATION_LOG)
    name = stored_text(conversation)
    found: list[Flush] = []
    flush_id = run_without_loop(log.head(name)).flush_id
    while flush_id is not None:
        flush = run_without_loop(log.find_flush(name, flush_id))
        found.append(flush._replace(created_at=log.read_instant(flush.created_at)))
        flush_id = flush.previous
    return found


def restored(store: EntryStore, conversation: str, flush: Flush) -> bool:
    """Whether a flush, and all that came after it, were taken back."""
    log: Any = store.blocking.log(CONVERSATION_LOG)
    name = stored_text(conversation)
    done: bool = run_without_loop(log.restore(name, run_without_loop(log.head(name)).flush_id, flush))
    return done
