"""Conversations in the memory of this process, for the in-memory store and for conversations over entries."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from firefly_memory.codec import TEXT, Form
from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.conversations.log import Appended, Flush, Flushed, Head, Order, StoredTurn, identities_of
from firefly_memory.entries.record import as_it_is
from firefly_memory.entries.scopes import FACTS_OF_CONVERSATIONS
from firefly_memory.errors import StoreClosedError, TurnsDroppedError
from firefly_memory.identifiers import original_name
from firefly_memory.tombstones.in_memory import MemoryTombstones

T = TypeVar("T")


class KeptConversation:
    """One conversation and its operations. Not safe for threads: the caller holds a lock.

    Of the turns that are evicted, the newest ``max_turns_kept`` stay, or all of them.
    """

    def __init__(
        self,
        conversation_id: str,
        created_at: datetime,
        turns: Sequence[StoredTurn] = (),
        max_turns_kept: int | None = None,
        owner: str | None = None,
        dropped: tuple[int, int] = (0, 0),
    ) -> None:
        """``turns`` come after the ``dropped`` ones: so many, with so many tokens."""
        count, tokens = dropped
        self.head = Head(conversation_id, count, tokens, 0, 0, None, created_at, created_at, owner, count)
        self.claim: str | None = None
        self.claimed_until: datetime | None = None
        self.flushes: dict[str, Flush] = {}
        self.turns: list[StoredTurn] = []
        """The kept turns; the number of the first one is ``head.dropped_turns``."""
        self._max_turns_kept = max_turns_kept
        self._tokens_before: list[int] = []
        self._by_key: dict[str, StoredTurn] = {}
        for turn in turns:
            # Two writers of a store that promises little may have stored the same one twice: the first has the key.
            again = turn.idempotency_key is not None and turn.idempotency_key in self._by_key
            self.append(turn._replace(idempotency_key=None) if again else turn, None)

    @property
    def dropped_tokens(self) -> int:
        """The tokens of the turns that were dropped."""
        return self._tokens_before[0] if self._tokens_before else self.head.tokens

    def append(self, draft: StoredTurn, expected: int | None, owner: str | None = None) -> Appended | None:
        head = self.head
        if expected not in (None, head.turns) or draft.idempotency_key in self._by_key:
            return None
        if owner not in (None, head.owner):
            return None
        turn = draft._replace(turn_id=head.turns)
        self.turns.append(turn)
        self._tokens_before.append(head.tokens)
        if turn.idempotency_key is not None:
            self._by_key[turn.idempotency_key] = turn
        tokens = head.tokens + turn.tokens
        self.head = head._replace(turns=head.turns + 1, tokens=tokens, updated_at=turn.created_at)
        return Appended(head.turns + 1, tokens, head.evicted_tokens, head.evicted_turns)

    def is_still(self, seen: Head) -> bool:
        """Whether nobody has appended since it was ``seen``, or made another conversation of its name."""
        return (self.head.turns, self.head.updated_at) == (seen.turns, seen.updated_at)

    def fork(self, fork_id: str, turns: int | None, now: datetime) -> KeptConversation:
        head = self.head
        count = head.turns if turns is None else min(turns, head.turns)
        dropped = (head.dropped_turns, self.dropped_tokens) if count and head.dropped_turns else (0, 0)
        fork = KeptConversation(fork_id, now, (), self._max_turns_kept, head.owner, dropped)
        if head.lacks_turns_for(turns):
            raise TurnsDroppedError(original_name(head.conversation_id), head.dropped_turns)
        for turn in self.turns[: max(count - head.dropped_turns, 0)]:
            fork.append(turn, None)
        if head.evicted_turns <= count:
            fork.head = fork.head._replace(
                evicted_turns=head.evicted_turns,
                evicted_tokens=head.evicted_tokens,
                summary=head.summary,
                flush_id=head.flush_id,
                marks=head.marks,
            )
            fork.flushes = {} if head.flush_id is None else dict(self.flushes)
        return fork

    def window(self, budget: int) -> tuple[Head, Sequence[StoredTurn]]:
        head = self.head
        first = bisect_left(self._tokens_before, head.tokens - budget)
        return head, self.turns[max(first, head.evicted_turns - head.dropped_turns) :]

    def after(self, turn_id: int, limit: int | None) -> Sequence[StoredTurn]:
        start = max(turn_id + 1 - self.head.dropped_turns, 0)
        return self.turns[start : None if limit is None else start + limit]

    def find(self, idempotency_key: str) -> StoredTurn | None:
        return self._by_key.get(idempotency_key)

    def claim_summary(self, claim: str, evicted: int, now: datetime, until: datetime) -> bool:
        beyond = until + (until - now)  # a claim that lasts longer was made while a clock was ahead
        taken = self.claimed_until is not None and now < self.claimed_until <= beyond
        if taken or evicted != self.head.evicted_turns:
            return False
        self.claim, self.claimed_until = claim, until
        return True

    def flush(self, flush: Flush, after: Flushed) -> bool:
        if not self.release(flush.flush_id):
            return False
        self.flushes[flush.flush_id] = flush
        dropped = after.dropped_turns
        if self._max_turns_kept is not None:
            dropped = max(dropped, after.evicted_turns - self._max_turns_kept)
        self._drop(dropped - self.head.dropped_turns)
        new = after._replace(dropped_turns=self.head.dropped_turns)
        self.head = self.head._replace(**new._asdict(), flush_id=flush.flush_id)
        return True

    def restore(self, newest: str, flush: Flush) -> bool:
        if self.head.flush_id != newest or self.head.dropped_turns > flush.turns_before:
            return False
        self.claim = self.claimed_until = None
        self.head = self.head._replace(
            evicted_turns=flush.turns_before,
            evicted_tokens=flush.tokens_before,
            summary=flush.summary_before,
            flush_id=flush.previous,
        )
        return True

    def release(self, claim: str) -> bool:
        if claim != self.claim:
            return False
        self.claim = self.claimed_until = None
        return True

    def _drop(self, count: int) -> None:
        """Drop the ``count`` oldest kept turns, with their idempotency keys."""
        if count <= 0:
            return
        for turn in self.turns[:count]:
            if turn.idempotency_key is not None:
                del self._by_key[turn.idempotency_key]
        del self.turns[:count], self._tokens_before[:count]
        self.head = self.head._replace(dropped_turns=self.head.dropped_turns + count)


class Memory(Protocol):
    """The store, as far as conversations need it."""

    max_turns_kept: int | None
    lock: ForkSafeLock
    tombstones: MemoryTombstones

    async def clear(self, namespace: str) -> None: ...

    async def clear_all_of(self, prefix: str) -> None:
        """:meth:`clear` for all namespaces that begin with ``prefix``."""


class MemoryConversationLog:
    """A :class:`~firefly_memory.conversations.log.ConversationLog` in a dict."""

    form: Form = TEXT
    read_instant = staticmethod(as_it_is)

    def __init__(self, memory: Memory) -> None:
        self._clear = memory.clear
        self._clear_all_of = memory.clear_all_of
        self._max_turns_kept = memory.max_turns_kept
        self._conversations: dict[str, KeptConversation] = {}
        self._lock = memory.lock
        self._tombstones = memory.tombstones
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._conversations.clear()

    async def create(self, conversation_id: str, now: datetime, owner: str | None = None) -> bool:
        with self._lock:
            self._check_open("create_conversation")
            if conversation_id in self._conversations:
                return False
            self._tombstones.check("create_conversation", identities_of(conversation_id, owner))
            self._conversations[conversation_id] = self._new(conversation_id, now, owner)
            return True

    async def append(
        self, conversation_id: str, draft: StoredTurn, expected: int | None, owner: str | None = None
    ) -> Appended | None:
        with self._lock:
            self._check_open("append_turn")
            conversation = self._conversations.get(conversation_id)
            if conversation is None:
                self._tombstones.check("append_turn", identities_of(conversation_id, owner))
                conversation = self._new(conversation_id, draft.created_at, owner)
            appended = conversation.append(draft, expected, owner)
            if appended is not None:
                self._conversations[conversation_id] = conversation
            return appended

    async def head(self, conversation_id: str) -> Head | None:
        return self._with(conversation_id, "conversation_head", lambda kept: kept.head, None)

    async def window(self, conversation_id: str, budget: int) -> tuple[Head, Sequence[StoredTurn]] | None:
        return self._with(conversation_id, "conversation_window", lambda kept: kept.window(budget), None)

    async def turns(self, conversation_id: str, after: int, limit: int | None) -> Sequence[StoredTurn]:
        return self._with(conversation_id, "turns_after", lambda kept: kept.after(after, limit), ())

    async def find(self, conversation_id: str, idempotency_key: str) -> StoredTurn | None:
        return self._with(conversation_id, "find_turn", lambda kept: kept.find(idempotency_key), None)

    async def claim(self, conversation_id: str, claim: str, evicted: int, now: datetime, until: datetime) -> bool:
        def work(kept: KeptConversation) -> bool:
            return kept.claim_summary(claim, evicted, now, until)

        return self._with(conversation_id, "claim_summary", work, otherwise=False)

    async def flush(self, conversation_id: str, flush: Flush, after: Flushed) -> bool:
        return self._with(conversation_id, "flush_turns", lambda kept: kept.flush(flush, after), otherwise=False)

    async def find_flush(self, conversation_id: str, flush_id: str) -> Flush | None:
        return self._with(conversation_id, "find_flush", lambda kept: kept.flushes.get(flush_id), None)

    async def restore(self, conversation_id: str, newest: str, flush: Flush) -> bool:
        return self._with(conversation_id, "restore_turns", lambda kept: kept.restore(newest, flush), otherwise=False)

    async def release(self, conversation_id: str, claim: str) -> None:
        self._with(conversation_id, "release_claim", lambda kept: kept.release(claim), otherwise=False)

    async def fork(self, conversation_id: str, fork_id: str, turns: int | None, now: datetime) -> bool:
        with self._lock:
            self._check_open("fork_conversation")
            conversation = self._conversations.get(conversation_id)
            if conversation is None or fork_id in self._conversations:
                return False
            self._tombstones.check("fork_conversation", identities_of(fork_id, conversation.head.owner))
            self._conversations[fork_id] = conversation.fork(fork_id, turns, now)
            return True

    async def delete(self, conversation_id: str, facts: str | None = None, seen: Head | None = None) -> bool:
        with self._lock:
            self._check_open("delete_conversation")
            there = self._conversations.get(conversation_id)
            if seen is not None and (there is None or not there.is_still(seen)):
                return False
            self._conversations.pop(conversation_id, None)
        if facts is not None:
            await self._clear(facts)
        return True

    async def delete_all(self, namespace: str | None) -> None:
        with self._lock:
            self._check_open("clear_all")
            self._conversations.clear()
        await self._clear_all_of(FACTS_OF_CONVERSATIONS)
        if namespace is not None:
            await self._clear(namespace)

    async def page(
        self, limit: int, after: tuple[datetime, str] | None, owner: str | None = None, order: Order = "created"
    ) -> Sequence[Head]:
        with self._lock:
            self._check_open("conversation_page")
            heads = [kept.head for kept in self._conversations.values() if owner in (None, kept.head.owner)]
        return newest_first(heads, limit, after, order)

    def _new(self, conversation_id: str, now: datetime, owner: str | None) -> KeptConversation:
        return KeptConversation(conversation_id, now, max_turns_kept=self._max_turns_kept, owner=owner)

    def _with(self, conversation_id: str, operation: str, work: Callable[[KeptConversation], T], otherwise: T) -> T:
        with self._lock:
            self._check_open(operation)
            conversation = self._conversations.get(conversation_id)
            return otherwise if conversation is None else work(conversation)

    def _check_open(self, operation: str) -> None:
        if self._closed:
            raise StoreClosedError(operation)


def newest_first(
    heads: list[Head], limit: int, after: tuple[datetime, str] | None, order: Order = "created"
) -> list[Head]:
    """A page of conversations, sorted from all of them."""
    by_creation = order == "created"
    positions = {(head.created_at if by_creation else head.updated_at, head.conversation_id): head for head in heads}
    wanted = sorted((each for each in positions if after is None or each < after), reverse=True)
    return [positions[each]._replace(summary=None) for each in wanted[:limit]]
