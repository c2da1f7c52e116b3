"""The flushes of a conversation that are in force: its head names the newest, and each names the one before it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.conversations.log import ConversationLog, Flush, Head
from firefly_memory.conversations.types import FlushInfo
from firefly_memory.errors import (
    ConflictError,
    CorruptDataError,
    TurnsDroppedError,
    UnknownConversationError,
    UnknownFlushError,
)
from firefly_memory.identifiers import original_name, original_or_none, stored_name

_ATTEMPTS = 100  # each that fails is a flush by somebody else at the same moment


async def chain(log: ConversationLog, head: Head) -> AsyncIterator[tuple[Flush, str | None]]:
    """The flushes in force, the newest first, each with the summary that it made."""
    flush_id, summary = head.flush_id, head.summary
    met: set[str] = set()
    while flush_id is not None:
        if flush_id in met:
            where = f"flush {flush_id!r} of conversation {original_name(head.conversation_id)!r}"
            raise CorruptDataError("reading a conversation", where, "it is before itself")
        met.add(flush_id)
        flush = await log.find_flush(head.conversation_id, flush_id)
        if flush is None:
            return  # the conversation has been deleted since
        yield flush, summary
        flush_id, summary = flush.previous, flush.summary_before


async def list_flushes(log: ConversationLog, conversation_id: str, limit: int | None) -> list[FlushInfo]:
    """The newest flushes that are in force, the newest first."""
    head = await log.head(stored_name("conversation_id", conversation_id))
    found: list[FlushInfo] = []
    if head is None or limit == 0:
        return found
    async for flush, summary in chain(log, head):
        found.append(_info(log, head, flush, summary))
        if len(found) == limit:
            break
    return found


def _info(log: ConversationLog, head: Head, flush: Flush, summary: str | None) -> FlushInfo:
    try:
        return FlushInfo(
            flush_id=flush.flush_id,
            strategy=flush.strategy,
            first_turn=flush.turns_before,
            turns=flush.turns - flush.turns_before,
            summary=original_or_none(summary),
            created_at=log.read_instant(flush.created_at),
        )
    except DAMAGE as exc:
        where = f"flush {flush.flush_id!r} of conversation {original_name(head.conversation_id)!r}"
        raise damaged("reading a conversation", where, exc) from exc


async def restore_flush(log: ConversationLog, conversation_id: str, flush_id: str) -> None:
    """Undo a flush and all that came after it. What was restored before stays as it is."""
    name, wanted = stored_name("conversation_id", conversation_id), stored_name("flush_id", flush_id)
    for _ in range(_ATTEMPTS):
        head = await log.head(name)
        if head is None:
            raise UnknownConversationError(conversation_id)
        flush = await _in_force(log, head, wanted)
        if flush is None:
            if await log.find_flush(name, wanted) is None:
                raise UnknownFlushError(conversation_id, flush_id)
            return
        if head.dropped_turns > flush.turns_before:
            raise TurnsDroppedError(conversation_id, head.dropped_turns)
        assert head.flush_id is not None
        if await log.restore(name, head.flush_id, flush):
            return
    raise ConflictError(f"conversation {conversation_id!r} was changed by others while it was restored; try again")


async def _in_force(log: ConversationLog, head: Head, flush_id: str) -> Flush | None:
    async for flush, _ in chain(log, head):
        if flush.flush_id == flush_id:
            return flush
    return None
