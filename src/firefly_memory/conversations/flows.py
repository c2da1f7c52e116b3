"""The work of :class:`~firefly_memory.conversations.memory.ConversationMemory`, written once for both modes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from firefly_memory import clock
from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.conversations.attached import Attached
from firefly_memory.conversations.attempts import Attempts
from firefly_memory.conversations.cursors import cursor_of, position_in_list
from firefly_memory.conversations.flush_chain import list_flushes, restore_flush
from firefly_memory.conversations.flushing import Flusher, replace_summary
from firefly_memory.conversations.log import CONVERSATION_LOG, MOST_TURNS, Head, Order, StoredTurn
from firefly_memory.conversations.policy import Sizes
from firefly_memory.conversations.turn_form import NewTurn, TurnForm
from firefly_memory.conversations.types import ConversationInfo, ConversationPage, ConversationTurn, FlushInfo, Window
from firefly_memory.conversations.window import Making, window_of
from firefly_memory.entries.scopes import stored_facts_of
from firefly_memory.errors import (
    ConflictError,
    CorruptDataError,
    ErasedError,
    InvalidEntryError,
    StaleConversationError,
    TurnConflictError,
    TurnsDroppedError,
    UnknownConversationError,
)
from firefly_memory.identifiers import new_entry_id, original_name, original_or_none, stored_name
from firefly_memory.protocols import StoreView
from firefly_memory.tokens.estimator import TokenEstimator
from firefly_memory.tombstones.log import TOMBSTONES, conversation_identity, owner_identity
from firefly_memory.validation import checked_text, checked_whole_number

logger = logging.getLogger("firefly_memory")

_PAGE = 500
_ATTEMPTS = 100  # each that fails is a deletion by somebody else at the same moment, or damage

_COMPARED = ("user_prompt", "assistant_response", "metadata", "messages", "messages_format")
"""The fields that must be equal in a retry; the last two only if it has messages."""


_NO_STRATEGIES = Attached()


@dataclass(frozen=True, slots=True)
class Rules:
    """The options of a conversation memory."""

    max_tokens: int
    estimator: TokenEstimator
    attempts: Attempts = field(default_factory=Attempts)


@dataclass(frozen=True, slots=True)
class Condition:
    """The conditions for appending a turn, and the key that identifies a retry."""

    turn_id: int | None = None
    idempotency_key: str | None = None
    expected_turns: int | None = None
    owner: str | None = None
    """The owner of a new conversation, or the owner that it must have."""


class ConversationFlows:
    """Works on one mode of a store. The attached strategies decide when turns leave the window, and what is sent."""

    def __init__(self, view: StoreView, rules: Rules, attached: Attached = _NO_STRATEGIES) -> None:
        self._log = view.log(CONVERSATION_LOG)
        self._tombstones = view.log(TOMBSTONES)
        self._rules = rules
        self._attached = attached
        self._turns = TurnForm(self._log, rules.estimator)
        self._turn = self._turns.turn
        asked = attached.long_term if attached.flushes else ()
        self._flusher = Flusher(self._log, asked, rules.estimator, partial(attached.about, self._log))

    async def new_conversation(self, conversation_id: str | None, owner: str | None = None) -> str:
        name = new_entry_id() if conversation_id is None else conversation_id
        is_new = await self._log.create(_stored(name), clock.now(), _stored_owner(owner))
        if not is_new and owner is not None:
            await self.check_owner(name, owner)
        return name

    async def check_owner(self, conversation_id: str, owner: str | None) -> None:
        """``ConflictError`` if the conversation exists and has another owner, or has none."""
        head = await self.head(conversation_id)
        if head is not None:
            _check_owner(conversation_id, head, owner)

    async def add_turn(
        self, conversation_id: str, new: NewTurn, condition: Condition, *, summarize: bool = True
    ) -> ConversationTurn:
        name = _stored(conversation_id)
        expected = _expected(condition)
        owner = _stored_owner(condition.owner)
        draft = self._turns.draft(new, condition.idempotency_key)
        appended = await self._log.append(name, draft, expected, owner)
        attempts = 0
        while appended is None:
            if (attempts := attempts + 1) == _ATTEMPTS:
                raise CorruptDataError("add_turn", f"conversation {conversation_id!r}", "it counts too few turns")
            if owner is not None:
                await self.check_owner(conversation_id, condition.owner)
            turn_id = None if condition.turn_id is None else expected
            earlier = await self._earlier(conversation_id, new, draft, turn_id)
            if earlier is not None:
                return earlier
            if expected is not None:
                there = await self._log.head(name)
                if there is not None and turn_id is not None and turn_id < there.dropped_turns:
                    raise TurnsDroppedError(conversation_id, there.dropped_turns)
                raise StaleConversationError(conversation_id, expected, there.turns if there else 0)
            # What was in the way has been deleted meanwhile.
            appended = await self._log.append(name, draft, expected, owner)
        reported = draft.input_tokens or 0
        is_due = self._flusher.is_due(Sizes(appended.live_turns, appended.live_tokens, reported))
        is_due = is_due and not self._rules.attempts.must_wait(name)
        if is_due and summarize:
            await self.summarize(conversation_id, reported)
        turn = self._turns.appended(new, draft, appended.turns - 1)
        return replace(turn, summary_is_due=True) if is_due and not summarize else turn

    def check(self, new: NewTurn) -> None:
        """Check a turn: ``InvalidEntryError`` if it cannot be stored."""
        self._turns.draft(new, None)

    async def get_window(
        self, conversation_id: str, max_tokens: int | None, owner: str | None = None, prompt: str | None = None
    ) -> Window:
        budget = self._rules.max_tokens if max_tokens is None else _count("max_tokens", max_tokens)
        name = _stored(conversation_id)
        mine = _stored_owner(owner)
        found = await self._log.window(name, budget)
        if found is None:
            # Before a model is asked: the turn of somebody who is erased would be refused only after its answer.
            if mine is not None and await self._tombstones.are_there(
                [conversation_identity(name), owner_identity(mine)]
            ):
                raise ErasedError("get_window")
            head = Head(name, 0, 0, 0, 0, None, None, None)
            stored: Sequence[StoredTurn] = []
        else:
            head, stored = found
            if owner is not None:
                _check_owner(conversation_id, head, owner)
        recalled = await self._recalled(name, None if found is None else head, owner, prompt)
        if found is None and not recalled:
            return Window(conversation_id, budget=budget)
        making = Making(budget, self._rules.estimator, self._attached.short_term, lambda turn: self._turn(name, turn))
        window = window_of(head, stored, recalled, making)
        if head.live_turns and not window.turns:
            logger.warning(
                "no turn of conversation %r fits its budget: %s", conversation_id, ", ".join(window.left_out)
            )
        return window

    async def _recalled(self, name: str, head: Head | None, owner: str | None, prompt: str | None) -> Sequence[str]:
        """What the strategies find for a new prompt."""
        if not prompt or not self._attached.searching("always"):
            return ()
        conversation = self._attached.about(self._log, name, head, owner)
        found = await self._attached.search("always", checked_text("prompt", prompt), conversation)
        summary = "" if head is None else original_or_none(head.summary) or ""
        return [text for text in found if text not in summary]  # a part of the summary is sent already

    @property
    def is_searched_by_tool(self) -> bool:
        return bool(self._attached.searching("tool"))

    async def search_memory(self, conversation_id: str, query: str, owner: str | None = None) -> Sequence[str]:
        """What the strategies find that are searched by a tool."""
        name, text = _stored(conversation_id), checked_text("query", query)
        if not self.is_searched_by_tool:
            return ()
        head = await self._log.head(name)
        if head is not None and owner is not None:
            _check_owner(conversation_id, head, owner)
        return await self._attached.search("tool", text, self._attached.about(self._log, name, head, owner))

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

    async def list_conversations(
        self, limit: int, after: str | None, owner: str | None = None, order: Order = "created"
    ) -> ConversationPage:
        limit, mine = _count("limit", limit), _stored_owner(owner)
        position = position_in_list(after, order)
        if limit == 0:
            return ConversationPage(conversations=(), next=after)
        heads = await self._log.page(limit + 1, position, mine, order)
        found = tuple(self.info(head) for head in heads[:limit])
        return ConversationPage(conversations=found, next=cursor_of(found[-1], order) if len(heads) > limit else None)

    async def conversation_ids(self) -> list[str]:
        """The ids of all conversations, in the order of their creation."""
        ids: list[str] = []
        after: str | None = None
        while True:
            page = await self.list_conversations(_PAGE, after)
            ids += [conversation.conversation_id for conversation in page]
            after = page.next
            if after is None:
                return ids[::-1]

    async def fork(self, conversation_id: str, fork_id: str | None, turns: int | None) -> str:
        name = new_entry_id() if fork_id is None else fork_id
        limit = None if turns is None else _count("turns", turns)
        for _ in range(_ATTEMPTS):
            if await self._log.fork(_stored(conversation_id), _stored(name), limit, clock.now()):
                return name
            if await self.head(conversation_id) is None:
                raise UnknownConversationError(conversation_id)
            if await self.head(name) is not None:
                raise ConflictError(f"there is a conversation {name!r} already; a fork needs an id that is free")
        raise ConflictError(f"conversation {conversation_id!r} was changed by others while it was copied; try again")

    async def clear(self, conversation_id: str) -> None:
        name = _stored(conversation_id)
        await self._log.delete(name, stored_facts_of(name))
        # Last: a flush that is under way notices the deletion, and forgets what it has kept.
        for strategy in self._attached.long_term:
            await strategy.forget(self._attached.about(self._log, name, None, None))

    async def clear_all(self) -> None:
        await self._log.delete_all(None)

    async def replace_summary(self, conversation_id: str, summary: str | None, turns: int) -> None:
        """Replace the first ``turns`` turns by the ``summary`` of an import."""
        await replace_summary(self._log, _stored(conversation_id), summary, turns)

    async def summarize(self, conversation_id: str, input_tokens: int | None = None) -> None:
        """Flush the oldest turns, if the strategies say so. An error is only reported, because all turns are stored."""
        name, attempts = _stored(conversation_id), self._rules.attempts
        try:
            await self._flusher.flush(name, lambda turn: self._turn(name, turn), input_tokens)
        except Exception as exc:
            logger.exception("summarizing conversation %r failed; nothing is lost", conversation_id)
            attempts.failed(name, conversation_id, exc)
        else:
            attempts.succeeded(name)

    async def flushes(self, conversation_id: str, limit: int | None) -> list[FlushInfo]:
        """The newest flushes that are in force, the newest first."""
        return await list_flushes(self._log, conversation_id, None if limit is None else _count("limit", limit))

    async def restore_flush(self, conversation_id: str, flush_id: str) -> None:
        """Undo a flush and all that came after it."""
        await restore_flush(self._log, conversation_id, flush_id)

    async def _earlier(
        self, conversation_id: str, new: NewTurn, draft: StoredTurn, turn_id: int | None
    ) -> ConversationTurn | None:
        """The turn that an earlier attempt has stored."""
        name = _stored(conversation_id)
        found, given = None, ""
        if draft.idempotency_key is not None:
            found = await self._log.find(name, draft.idempotency_key)
            given = f"idempotency_key {original_name(draft.idempotency_key)!r}"
        if found is None and turn_id is not None:
            there = await self._log.turns(name, turn_id - 1, 1)
            found, given = next((each for each in there if each.turn_id == turn_id), None), f"turn_id {turn_id}"
        if found is None:
            return None
        earlier = self._turn(name, found)
        # Places may write the same value in other words.
        found = found._replace(metadata=self._log.form.encode(earlier.metadata, "metadata"))
        compared = _COMPARED if new.raw_messages is not None else _COMPARED[:3]
        if any(getattr(found, each) != getattr(draft, each) for each in compared):
            raise TurnConflictError(conversation_id, found.turn_id, given)
        return earlier

    def info(self, head: Head) -> ConversationInfo:
        """What a head says of its conversation."""
        try:
            return ConversationInfo(
                conversation_id=original_name(head.conversation_id),
                turns=head.turns,
                total_tokens=head.tokens,
                summarized_turns=head.evicted_turns,
                created_at=self._log.read_instant(head.created_at),
                updated_at=self._log.read_instant(head.updated_at),
                dropped_turns=head.dropped_turns,
                owner=original_or_none(head.owner),
            )
        except DAMAGE as exc:
            raise damaged("listing", f"conversation {head.conversation_id!r}", exc) from exc


def _stored(conversation_id: str) -> str:
    return stored_name("conversation_id", conversation_id)


def _stored_owner(owner: str | None) -> str | None:
    return None if owner is None else stored_name("owner", owner)


def _check_owner(conversation_id: str, head: Head, owner: str | None) -> None:
    if head.owner != _stored_owner(owner):
        # Not whose it is: that is the name of another person.
        of = "has an owner" if owner is None else f"does not belong to {owner!r}"
        raise ConflictError(f"conversation {conversation_id!r} {of}; the owner of a conversation never changes")


def _expected(condition: Condition) -> int | None:
    turn_id, turns = condition.turn_id, condition.expected_turns
    if turn_id is not None and turns is not None and turn_id != turns:
        raise InvalidEntryError("expected_turns", f"is {turns}, but turn {turn_id} comes after {turn_id} turns")
    if turn_id is not None:
        return _count("turn_id", turn_id)
    return None if turns is None else _count("expected_turns", turns)


def _count(what: str, value: int, least: int = 0) -> int:
    """``limit`` after a check, and small enough for every database."""
    return min(checked_whole_number(what, value, least), MOST_TURNS)
