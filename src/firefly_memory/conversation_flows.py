"""What :class:`~firefly_memory.conversation.ConversationMemory` does, once for both colours."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from firefly_memory import clock
from firefly_memory.codec import DecodeError
from firefly_memory.entries import in_utc
from firefly_memory.errors import (
    CorruptDataError,
    InvalidEntryError,
    StaleConversationError,
    TurnConflictError,
)
from firefly_memory.messages import decoded, encoded, first_whole, replayed, summary_text
from firefly_memory.names import new_entry_id, original_name, stored_name, stored_text
from firefly_memory.stores.conversations import ConversationLog, Head, StoredTurn
from firefly_memory.stores.records import as_token, from_token
from firefly_memory.tokens import TokenEstimator
from firefly_memory.turns import ConversationInfo, ConversationPage, ConversationTurn, Window

logger = logging.getLogger("firefly_memory")

LEASE = timedelta(minutes=10)
"""How long a summarizer may take before another writer may try in its place, for its process may have died."""

_PAGE = 500

Summarize = Callable[[list[ConversationTurn]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Rules:
    """What a conversation memory was made with."""

    max_tokens: int
    summarize_threshold: int
    estimator: TokenEstimator


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn on its way in, checked."""

    user_prompt: str
    assistant_response: str
    raw_messages: Sequence[Any] = ()
    metadata: dict[str, Any] | None = None
    tokens: int | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """What has to hold for a turn to be appended, and how a retry is known."""

    turn_id: int | None = None
    idempotency_key: str | None = None
    expected_turns: int | None = None


class ConversationFlows:
    """Over the log of one colour of a store. ``summarize`` is the summarizer in that colour."""

    def __init__(self, log: ConversationLog, rules: Rules, summarize: Summarize | None) -> None:
        self._log = log
        self._rules = rules
        self._summarize = summarize

    async def new_conversation(self, conversation_id: str | None) -> str:
        name = new_entry_id() if conversation_id is None else conversation_id
        await self._log.create(_stored(name), clock.now())
        return name

    async def add_turn(
        self, conversation_id: str, new: NewTurn, condition: Condition, *, summarize: bool = True
    ) -> ConversationTurn:
        name = _stored(conversation_id)
        expected = _expected(condition)
        draft = self._draft(new, condition.idempotency_key)
        head = await self._log.append(name, draft, expected)
        if head is None:
            earlier = await self._earlier(conversation_id, draft, condition.turn_id)
            if earlier is None:
                there = await self._log.head(name)
                raise StaleConversationError(conversation_id, expected or 0, there.turns if there else 0)
            return self._turn(name, earlier)
        if summarize:
            await self._summarize_if_due(name, head)
        return self._turn(name, draft._replace(turn_id=head.turns - 1), draft.created_at)

    async def get_window(self, conversation_id: str, max_tokens: int | None) -> Window:
        budget = self._rules.max_tokens if max_tokens is None else _count("max_tokens", max_tokens)
        name = _stored(conversation_id)
        found = await self._log.window(name, budget)
        if found is None:
            return Window(conversation_id, budget=budget)
        head, stored = found
        left_out: list[str] = []
        summary = None if head.summary is None else original_name(head.summary)
        shown, room = self._room_beside(summary, budget, left_out)
        turns = self._fitting(head, stored, room, left_out)
        return Window(
            conversation_id,
            budget=budget,
            messages=replayed(turns, None if shown is None else self._as_turn(shown, head, turns)),
            turns=tuple(turn.turn_id for turn in turns),
            tokens=sum(turn.token_estimate for turn in turns) + budget - room,
            summary=summary,
            left_out=tuple(left_out),
        )

    def _as_turn(self, summary: str, head: Head, turns: Sequence[ConversationTurn]) -> ConversationTurn:
        """The summary as the turn before the others."""
        when = turns[0].created_at if turns else self._log.read_instant(head.updated_at)
        return ConversationTurn.of_summary(summary, when)

    def _room_beside(self, summary: str | None, budget: int, left_out: list[str]) -> tuple[str | None, int]:
        """The summary, if it is to be shown, and the tokens that are left for turns."""
        if summary is None:
            return None, budget
        tokens = self._rules.estimator.estimate_turn("", summary_text(summary), ())
        if tokens <= budget // 2:
            return summary, budget - tokens
        left_out.append(f"the summary, whose {tokens} tokens are more than half of the budget of {budget}")
        return None, budget

    def _fitting(
        self, head: Head, stored: Sequence[StoredTurn], room: int, left_out: list[str]
    ) -> list[ConversationTurn]:
        tokens = sum(turn.tokens for turn in stored)
        start = 0
        while tokens > room:
            tokens -= stored[start].tokens
            start += 1
        # Decoded only now: reading messages takes longer than all the rest.
        turns = [self._turn(head.conversation_id, turn) for turn in stored[start:]]
        whole = first_whole([turn.raw_messages for turn in turns])
        first = head.turns - len(turns) + whole
        if head.evicted_turns:
            left_out.append(f"{head.evicted_turns} turns that the summary stands for")
        beyond = head.turns - len(turns) - head.evicted_turns
        if beyond:
            left_out.append(f"{beyond} turns before turn {first - whole}, for which the budget has no room")
        if whole:
            left_out.append(f"{whole} turns with results whose calls are not in the window")
        if head.turns and first == head.turns:
            logger.warning(
                "nothing of conversation %r fits its budget: %s", original_name(head.conversation_id), left_out
            )
        return turns[whole:]

    async def get_turns(self, conversation_id: str, limit: int | None, after: int | None) -> list[ConversationTurn]:
        name = _stored(conversation_id)
        start = -1 if after is None else _count("after", after, least=-1)
        stored = await self._log.turns(name, start, None if limit is None else _count("limit", limit))
        return [self._turn(name, turn) for turn in stored]

    async def iterate_turns(self, conversation_id: str) -> AsyncIterator[ConversationTurn]:
        """All turns, a page at a time."""
        after = -1
        while page := await self.get_turns(conversation_id, _PAGE, after):
            for turn in page:
                yield turn
            after = page[-1].turn_id

    async def head(self, conversation_id: str) -> Head | None:
        return await self._log.head(_stored(conversation_id))

    async def get_summary(self, conversation_id: str) -> str | None:
        head = await self.head(conversation_id)
        return None if head is None or head.summary is None else original_name(head.summary)

    async def get_total_tokens(self, conversation_id: str) -> int:
        head = await self.head(conversation_id)
        return 0 if head is None else head.tokens

    async def list_conversations(self, limit: int, after: str | None) -> ConversationPage:
        limit = _count("limit", limit)
        place = None if after is None else from_token(after, "list_conversations()")
        if limit == 0:
            return ConversationPage(conversations=(), next=after)
        heads = await self._log.page(limit + 1, place)
        found = tuple(self._info(head) for head in heads[:limit])
        last = as_token(found[-1].created_at, found[-1].conversation_id) if len(heads) > limit else None
        return ConversationPage(conversations=found, next=last)

    async def conversation_ids(self) -> list[str]:
        """Of all conversations, in the order they were made."""
        ids: list[str] = []
        after: str | None = None
        while True:
            page = await self.list_conversations(_PAGE, after)
            ids += [conversation.conversation_id for conversation in page]
            after = page.next
            if after is None:
                return ids[::-1]

    async def clear(self, conversation_id: str) -> None:
        await self._log.delete(_stored(conversation_id))

    async def clear_all(self) -> None:
        for conversation_id in await self.conversation_ids():
            await self.clear(conversation_id)

    async def replace_summary(self, conversation_id: str, summary: str, turns: int) -> None:
        """Let ``summary`` stand for the first ``turns`` turns: what an import brings."""
        name = _stored(conversation_id)
        head = await self._log.head(name)
        if head is None or (head.evicted_turns, head.summary) == (turns, stored_text(summary)):
            return
        evicted = await self._log.turns(name, -1, turns)
        claim, now = new_entry_id(), clock.now()
        if await self._log.claim(name, claim, head.evicted_turns, now, now + LEASE):
            await self._log.evict(name, claim, stored_text(summary), turns, sum(turn.tokens for turn in evicted))

    async def _summarize_if_due(self, name: str, head: Head) -> None:
        """Evict the oldest turns into the summary. What goes wrong here is logged: the turn is stored all the same."""
        if self._summarize is None or head.live_tokens <= self._rules.summarize_threshold:
            return
        if head.turns - head.evicted_turns < 2:  # noqa: PLR2004 - the newest turn is never evicted
            return
        claim, now = new_entry_id(), clock.now()
        try:
            if not await self._log.claim(name, claim, head.evicted_turns, now, now + LEASE):
                return  # somebody else is at it
            try:
                done = await self._evict(name, head, claim)
            except BaseException:
                await self._log.release(name, claim)
                raise
            if not done:
                await self._log.release(name, claim)
        except Exception:
            logger.exception("summarizing conversation %r failed; nothing is lost", original_name(name))

    async def _evict(self, name: str, head: Head, claim: str) -> bool:
        assert self._summarize is not None
        turns = [self._turn(name, turn) for turn in await self._log.turns(name, head.evicted_turns - 1, None)]
        count = _how_many_to_evict(turns, self._rules.summarize_threshold // 2)
        if count == 0:
            return False
        evicted = turns[:count]
        given = list(evicted)
        if head.summary is not None:
            given.insert(0, ConversationTurn.of_summary(original_name(head.summary), turns[0].created_at))
        summary = await self._summarize(given)
        if not isinstance(summary, str) or not summary.strip():
            raise TypeError(f"the summarizer returned {summary!r} instead of text")
        tokens = head.evicted_tokens + sum(turn.token_estimate for turn in evicted)
        return await self._log.evict(name, claim, stored_text(summary), head.evicted_turns + count, tokens)

    async def _earlier(self, conversation_id: str, draft: StoredTurn, turn_id: int | None) -> StoredTurn | None:
        """The turn that a first try of this one made."""
        name = _stored(conversation_id)
        found, given = None, ""
        if draft.idempotency_key is not None:
            found = await self._log.find(name, draft.idempotency_key)
            given = f"idempotency_key {original_name(draft.idempotency_key)!r}"
        if found is None and turn_id is not None:
            there = await self._log.turns(name, turn_id - 1, 1)
            found, given = (there[0] if there else None), f"turn_id {turn_id}"
        if found is not None and self._content(found) != self._content(draft):
            raise TurnConflictError(conversation_id, found.turn_id, given)
        return found

    def _content(self, turn: StoredTurn) -> tuple[Any, ...]:
        """What a retry must bring again."""
        form = self._log.form
        metadata = form.encode(form.decode(turn.metadata), "metadata")  # places may write the same value in other words
        return turn.user_prompt, turn.assistant_response, turn.messages, turn.messages_format, metadata

    def _draft(self, new: NewTurn, idempotency_key: str | None) -> StoredTurn:
        prompt, response = _text("user_prompt", new.user_prompt), _text("assistant_response", new.assistant_response)
        messages, form = encoded(new.raw_messages)
        tokens = new.tokens
        if tokens is None:
            estimate = self._rules.estimator.estimate_turn
            tokens = estimate(prompt, response, new.raw_messages)
        return StoredTurn(
            turn_id=-1,
            tokens=max(1, tokens),
            user_prompt=stored_text(prompt),
            assistant_response=stored_text(response),
            messages=messages,
            messages_format=form,
            metadata=self._log.form.encode(_mapping(new.metadata), "metadata"),
            idempotency_key=None if idempotency_key is None else stored_name("idempotency_key", idempotency_key),
            append_id=new_entry_id(),
            created_at=clock.now() if new.created_at is None else in_utc(new.created_at),
        )

    def _turn(self, name: str, stored: StoredTurn, created_at: datetime | None = None) -> ConversationTurn:
        try:
            return ConversationTurn(
                turn_id=stored.turn_id,
                user_prompt=original_name(stored.user_prompt),
                assistant_response=original_name(stored.assistant_response),
                raw_messages=decoded(stored.messages, stored.messages_format),
                metadata=self._log.form.decode(stored.metadata),
                token_estimate=stored.tokens,
                created_at=created_at or self._log.read_instant(stored.created_at),
            )
        except (AttributeError, DecodeError, TypeError, ValueError) as exc:
            where = f"turn {stored.turn_id} of conversation {original_name(name)!r}"
            raise CorruptDataError("reading a conversation", where, f"{type(exc).__name__}: {exc}") from exc

    def _info(self, head: Head) -> ConversationInfo:
        read = self._log.read_instant
        return ConversationInfo(
            conversation_id=original_name(head.conversation_id),
            turns=head.turns,
            total_tokens=head.tokens,
            summarized_turns=head.evicted_turns,
            created_at=read(head.created_at),
            updated_at=read(head.updated_at),
        )


def _how_many_to_evict(turns: Sequence[ConversationTurn], keep: int) -> int:
    """How many of the oldest turns to summarize, so that about ``keep`` tokens stay, the newest turn in any case."""
    tokens = sum(turn.token_estimate for turn in turns)
    count = 0
    while tokens > keep and count < len(turns) - 1:
        tokens -= turns[count].token_estimate
        count += 1
    messages = [turn.raw_messages for turn in turns]
    whole = count + first_whole(messages[count:])
    if whole < len(turns):
        return whole
    while count and first_whole(messages[count:]):  # rather keep more than part a call and its result
        count -= 1
    return count


def _stored(conversation_id: str) -> str:
    return stored_name("conversation_id", conversation_id)


def _expected(condition: Condition) -> int | None:
    turn_id, turns = condition.turn_id, condition.expected_turns
    if turn_id is not None and turns is not None and turn_id != turns:
        raise InvalidEntryError("expected_turns", f"is {turns}, but turn {turn_id} comes after {turn_id} turns")
    if turn_id is not None:
        return _count("turn_id", turn_id)
    return None if turns is None else _count("expected_turns", turns)


def _count(what: str, value: int, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidEntryError(what, f"must be a whole number from {least} up, not {value!r}")
    return value


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidEntryError(what, f"must be text, not {type(value).__name__}")
    return value


def _mapping(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidEntryError("metadata", f"must be a dict, not {type(value).__name__}")
    return value
