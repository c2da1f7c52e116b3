"""Conversations and their turns on their way from one store to another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from firefly_memory.codec import DOCUMENT
from firefly_memory.conversations.flows import Condition, ConversationFlows, Rules
from firefly_memory.conversations.log import CONVERSATION_LOG
from firefly_memory.conversations.moving_flushes import FlushWriter, are_there, described, flushes_of, without_flush
from firefly_memory.conversations.transfer import checked_summarized, turn_as_json, turn_from_json
from firefly_memory.conversations.turn_form import NewTurn
from firefly_memory.conversations.types import ConversationInfo, ConversationTurn
from firefly_memory.identifiers import original_name, original_or_none, stored_name, stored_text
from firefly_memory.messages.authority import without_system_messages
from firefly_memory.moving import Item, Kind, Placed, Walk, Writing, as_sorted_json
from firefly_memory.protocols import StoreView
from firefly_memory.tokens.estimator import TokenEstimator
from firefly_memory.tokens.formula import estimated, rates_for

_PAGE = 500

_BELIEVED = 4
"""A turn counts at least this part of the estimate of its texts, whatever the archive says."""


async def conversations_of(walk: Walk, _: None) -> Placed:
    """All conversations, the newest first."""
    flows = _Flows(walk.view)
    async for conversation in _listed(flows):
        name = conversation.conversation_id
        head = await flows.head(name)
        if head is None:
            continue  # it was deleted since
        yield (
            (conversation.created_at, stored_text(name)),
            {
                "conversation_id": name,
                "created_at": conversation.created_at.isoformat(),
                "summary": original_or_none(head.summary),  # which may stand for turns that are nowhere any more
                # What was dropped is nowhere: a copy begins with what comes after it.
                "summarized_turns": head.evicted_turns - head.dropped_turns,
                **({"dropped_turns": head.dropped_turns} if head.dropped_turns else {}),
                **({} if conversation.owner is None else {"owner": conversation.owner}),
                **await described(walk, head),
            },
        )


async def turns_of(walk: Walk, conversation: Item) -> Placed:
    """All turns of a conversation, counted from 0."""
    name = conversation["conversation_id"]
    async for turn, key in _Flows(walk.view).keyed_turns(name):
        item = {"conversation_id": name, **turn_as_json(turn, raw_messages=walk.raw_messages)}
        item["turn_id"] -= conversation.get("dropped_turns", 0)
        yield item["turn_id"], item if key is None else {**item, "idempotency_key": key}


async def _listed(flows: _Flows) -> AsyncIterator[ConversationInfo]:
    after: str | None = None
    while True:
        page = await flows.list_conversations(_PAGE, after)
        for conversation in page:
            yield conversation
        after = page.next
        if after is None:
            return


def _without_claims(item: Item, untrusted: bool) -> tuple[Item, int]:
    """Remove an untrusted summary, because it speaks as the system: its turns are replayed instead. Remove an untrusted
    owner, because an archive must not put words into the conversations of a person."""
    if not untrusted:
        return item, 0
    item = {**item, "summary": None, "summarized_turns": 0}
    for name in ("owner", "marks", "before_flushes"):
        item.pop(name, None)
    return item, 0


def _without_system_messages(item: Item, untrusted: bool) -> tuple[Item, int]:
    """Remove the messages that speak as the system, and the token count, which is then counted anew."""
    if not untrusted:
        return item, 0
    item = {**item, "token_estimate": None}
    messages = item.get("raw_messages")
    if not isinstance(messages, list):
        return item, 0
    item["raw_messages"] = without_system_messages(messages)
    return item, len(messages) - len(item["raw_messages"])


def _without_what_copies_lack(item: Item) -> str:
    """The conversation as both stores compare it: a copy does not keep the number of dropped turns. It gets the marks
    with its summary, if there is one."""
    return as_sorted_json({name: value for name, value in item.items() if name not in ("dropped_turns", "marks")})


def _with_encoded_values(item: Item) -> str:
    """The values of a turn are not text yet."""
    values = {name: DOCUMENT.encode(item[name], name) for name in ("metadata", "raw_messages")}
    return as_sorted_json({**item, **values})


def _has_no_summary_yet(mine: Item, theirs: Item) -> bool:
    """The summary is written last."""
    same_owner = mine.get("owner") == theirs.get("owner")
    has_less = bool(theirs["summarized_turns"] < mine["summarized_turns"])
    # A summary of turns that were dropped is one of no turns in the copy.
    has_none = theirs["summarized_turns"] == 0 and theirs["summary"] is None is not mine["summary"]
    return same_owner and (has_less or has_none)


TURN = Kind(
    name="turn",
    version=1,
    since=None,
    plural="turns",
    noun="turns",
    read=turns_of,
    selected_by="conversation_id",
    describe=lambda item: f"turn {item['turn_id']} of conversation {item['conversation_id']!r}",
    from_archive=_without_system_messages,
    canonical=_with_encoded_values,
)

FLUSH = Kind(
    name="flush",
    version=1,
    since="firefly-memory 0.2",
    plural="flushes",
    noun="flushes",
    read=flushes_of,
    selected_by="conversation_id",
    describe=lambda item: f"flush {item['flush_id']!r} of conversation {item['conversation_id']!r}",
    from_archive=without_flush,
    is_in=are_there,
)

CONVERSATION = Kind(
    name="conversation",
    version=1,
    since=None,
    plural="conversations",
    noun="conversations",
    read=conversations_of,
    selected_by="conversation_id",
    describe=lambda item: f"conversation {item['conversation_id']!r}",
    from_archive=_without_claims,
    canonical=_without_what_copies_lack,
    descending=True,
    is_part=_has_no_summary_yet,
    within=(TURN, FLUSH),
)

KINDS = (CONVERSATION,)


class ConversationWriter:
    """Writes conversations, each followed by its turns and its flushes. The summary is written after the last turn."""

    def __init__(self, view: StoreView, writing: Writing) -> None:
        self._view = view
        self._is_archive = writing.source is None
        self._conversation: Item | None = None
        self._flushes: FlushWriter | None = None
        self._turns = 0

    async def take(self, kind: str, item: Item, *, there: bool = False) -> None:
        if kind == CONVERSATION.name:
            await self._begin(item, there)
            return
        if self._conversation is None or item["conversation_id"] != self._conversation["conversation_id"]:
            raise ValueError("it is of another conversation than the lines before")
        await (self._add_turn if kind == TURN.name else self._add_flush)(item, there)

    async def _begin(self, item: Item, there: bool) -> None:
        await self.finish()
        name = item["conversation_id"]
        created_at = datetime.fromisoformat(item["created_at"]).astimezone(UTC)
        if not there:
            await _Flows(self._view).make(name, created_at, item.get("owner"))
        self._conversation, self._turns = item, 0
        self._flushes = FlushWriter(self._view.log(CONVERSATION_LOG), item)

    async def _add_flush(self, item: Item, there: bool) -> None:
        assert self._flushes is not None
        await self._flushes.take(item, self._turns, there=there)

    async def _add_turn(self, item: Item, there: bool) -> None:
        if not there:
            turn = turn_from_json(item, self._turns, "turn")
            condition = Condition(turn_id=self._turns, idempotency_key=item.get("idempotency_key"))
            flows = _Flows(self._view, self._tokens(turn, item.get("token_estimate")))
            await flows.add_turn(item["conversation_id"], turn, condition, summarize=False)
        self._turns += 1

    def _tokens(self, turn: NewTurn, stated: int | None) -> int | None:
        """The tokens of the turn; ``None`` to count them."""
        if turn.raw_messages is None or stated is None:
            return None
        return _believed(turn, turn.raw_messages, stated) if self._is_archive else stated

    async def flush(self) -> None:
        """Nothing waits here but the summary, which :meth:`finish` writes."""

    async def finish(self) -> None:
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            checked_summarized(conversation, "conversation", self._turns)
            assert self._flushes is not None
            await self._flushes.finish(self._turns)

    async def abandon(self) -> None:
        """Keep the written turns: a repeated import continues after them."""


def _believed(turn: NewTurn, messages: Sequence[Any], stated: int) -> int:
    texts = turn.user_prompt, turn.assistant_response, messages
    if stated * _BELIEVED >= _ByFormula().estimate_turn(*texts):
        return stated
    # The formula is too high for some texts, such as rows of one character.
    return max(stated, TokenEstimator().estimate_turn(*texts) // _BELIEVED)


class _ByFormula(TokenEstimator):
    """An estimator that needs no vocabulary, and so never warns."""

    def estimate(self, text: str) -> int:
        return estimated(text, self.tokens_per_word, rates_for(None, None)) if text else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted(TokenEstimator):
    """An estimator that returns a known count, perhaps that of a custom estimator."""

    tokens: int

    def estimate_turn(self, user_prompt: str, assistant_response: str, messages: Sequence[Any] = ()) -> int:
        return self.tokens


class _Flows(ConversationFlows):
    """The conversations of a store, for turns with ``tokens``, if these are known."""

    def __init__(self, view: StoreView, tokens: int | None = None) -> None:
        estimator = TokenEstimator() if tokens is None else _Counted(tokens=tokens)
        super().__init__(view, Rules(1, estimator))

    async def make(self, conversation_id: str, created_at: datetime, owner: str | None) -> None:
        """An empty conversation. If there is one, it has the same owner, or ``ConflictError`` is raised."""
        stored = None if owner is None else stored_name("owner", owner)
        if not await self._log.create(stored_name("conversation_id", conversation_id), created_at, stored):
            await self.check_owner(conversation_id, owner)

    async def keyed_turns(self, conversation_id: str) -> AsyncIterator[tuple[ConversationTurn, str | None]]:
        """All turns, with their idempotency keys."""
        name, after = stored_name("conversation_id", conversation_id), -1
        while page := await self._log.turns(name, after, _PAGE):
            for stored in page:
                key = stored.idempotency_key
                yield self._turn(name, stored), None if key is None else original_name(key)
            after = page[-1].turn_id
