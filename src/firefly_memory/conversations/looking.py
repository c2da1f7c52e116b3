"""Conversations and their turns, as people look at them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from firefly_memory.codec import DAMAGE, TEXT, damaged
from firefly_memory.conversations.cursors import cursor_at, position_of
from firefly_memory.conversations.flows import ConversationFlows, Rules
from firefly_memory.conversations.log import CONVERSATION_LOG, Order, StoredTurn
from firefly_memory.conversations.types import ConversationInfo
from firefly_memory.errors import NotSupportedError
from firefly_memory.identifiers import original_name, stored_name
from firefly_memory.looking import Field, Placed, Query, Resource, Row, RowId, Size, Type, Where
from firefly_memory.messages.storage import PYDANTIC_AI
from firefly_memory.protocols import StoreView
from firefly_memory.tokens.estimator import TokenEstimator

_PAGE = 500

ORDERS: dict[str, Order] = {"created": "created", "updated": "updated"}


class Totals(NamedTuple):
    """What all conversations have together."""

    conversations: int
    turns: int
    tokens: int


class DirectConversations(Protocol):
    """What a database counts in one query."""

    async def totals(self) -> Totals: ...


class _Conversations:
    """The conversations of a store, and what both readers ask of them."""

    def __init__(self, view: StoreView, direct: DirectConversations | None) -> None:
        self._log = view.log(CONVERSATION_LOG)
        self._flows = ConversationFlows(view, Rules(1, TokenEstimator()))
        self._direct = direct

    async def totals(self) -> Totals:
        if self._direct is not None:
            return await self._direct.totals()
        conversations, turns, tokens = 0, 0, 0
        async for each in self._all():
            conversations += 1
            turns += each.turns - each.dropped_turns
            tokens += each.total_tokens
        return Totals(conversations, turns, tokens)

    async def _all(self) -> AsyncIterator[ConversationInfo]:
        after: str | None = None
        while True:
            page = await self._flows.list_conversations(_PAGE, after)
            for each in page:
                yield each
            after = page.next
            if after is None:
                return


class ConversationReader(_Conversations):
    """Conversations, the newest first."""

    async def page(self, query: Query) -> Sequence[Placed]:
        order = ORDERS[query.order]
        after = None if query.after is None else cursor_at((query.after[0], query.after[1]), order)
        page = await self._flows.list_conversations(query.limit, after, query.where.get("owner"), order)
        return [Placed(position_of(each, order), _conversation(each)) for each in page]

    async def get(self, row_id: RowId) -> Row | None:
        head = await self._flows.head(row_id[0])
        if head is None:
            return None
        summary = None if head.summary is None else original_name(head.summary)
        return {**_conversation(self._flows.info(head)), "summary": summary}

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        deleted = 0
        for (conversation_id,) in dict.fromkeys(row_ids):
            if await self._flows.head(conversation_id) is not None:
                await self._flows.clear(conversation_id)
                deleted += 1
        return deleted

    async def size(self, _: Where) -> Size:
        totals = await self.totals()
        return Size(totals.conversations, totals.tokens)


class TurnReader(_Conversations):
    """The turns of a conversation, in order."""

    async def page(self, query: Query) -> Sequence[Placed]:
        conversation_id = query.where["conversation_id"]
        name, after = stored_name("conversation_id", conversation_id), -1 if query.after is None else query.after[0]
        turns = await self._log.turns(name, max(after, -1), query.limit)
        return [Placed((turn.turn_id,), self._turn(conversation_id, turn)) for turn in turns]

    async def get(self, row_id: RowId) -> Row | None:
        conversation_id, number = row_id
        if not (number.isascii() and number.isdigit()) or len(number) > _DIGITS:
            return None
        found = await self._log.turns(stored_name("conversation_id", conversation_id), int(number) - 1, 1)
        if not found or found[0].turn_id != int(number):
            return None
        return {**self._turn(conversation_id, found[0]), "messages": _messages(conversation_id, found[0])}

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        raise NotSupportedError(_KEPT)

    async def size(self, where: Where) -> Size:
        if "conversation_id" not in where:
            totals = await self.totals()
            return Size(totals.turns, totals.tokens)
        head = await self._flows.head(where["conversation_id"])
        return Size(0, 0) if head is None else Size(head.turns - head.dropped_turns, head.tokens)

    def _turn(self, conversation_id: str, turn: StoredTurn) -> Row:
        try:
            return {
                "conversation_id": conversation_id,
                "turn_id": turn.turn_id,
                "user_prompt": original_name(turn.user_prompt),
                "assistant_response": original_name(turn.assistant_response),
                "tokens": turn.tokens,
                "metadata": self._log.form.decode(turn.metadata),
                "created_at": self._log.read_instant(turn.created_at).isoformat(),
            }
        except DAMAGE as exc:
            raise damaged("list", f"turn {turn.turn_id} of conversation {conversation_id!r}", exc) from exc


_DIGITS = 9  # numbers of turns fit 32 bits

_KEPT = "a turn goes with its conversation, whose turns are numbered without gaps; delete the conversation"


def _conversation(each: ConversationInfo) -> Row:
    return {
        "conversation_id": each.conversation_id,
        "owner": each.owner,
        "turns": each.turns,
        "tokens": each.total_tokens,
        "summarized_turns": each.summarized_turns,
        "created_at": each.created_at.isoformat(),
        "updated_at": each.updated_at.isoformat(),
    }


def _messages(conversation_id: str, turn: StoredTurn) -> Any:
    """As JSON: nobody needs the library that wrote them to look at them."""
    try:
        if turn.messages is None:
            return []
        return json.loads(turn.messages) if turn.messages_format == PYDANTIC_AI else TEXT.decode(turn.messages)
    except DAMAGE as exc:
        raise damaged("get", f"turn {turn.turn_id} of conversation {conversation_id!r}", exc) from exc


_DIRECT = {"sql": "firefly_memory.conversations.sql.looking:SQLDirectConversations"}

CONVERSATIONS = Resource(
    kind="conversations",
    title="conversations, each with its turns and its facts",
    fields=(
        Field("conversation_id"),
        Field("owner"),
        Field("turns", Type.NUMBER),
        Field("tokens", Type.NUMBER),
        Field("summarized_turns", Type.NUMBER, in_table=False),
        Field("created_at", Type.INSTANT),
        Field("updated_at", Type.INSTANT),
        Field("summary", is_filter=False, in_table=False),
    ),
    identity=("conversation_id",),
    orders=dict.fromkeys(ORDERS, (datetime, str)),
    reader="firefly_memory.conversations.looking:ConversationReader",
    direct=_DIRECT,
    indexed=(("owner",),),
)

TURNS = Resource(
    kind="turns",
    title="turns of a conversation",
    fields=(
        Field("conversation_id", in_table=False),
        Field("turn_id", Type.NUMBER),
        Field("user_prompt"),
        Field("assistant_response"),
        Field("tokens", Type.NUMBER),
        Field("metadata", Type.JSON, in_table=False),
        Field("created_at", Type.INSTANT),
        Field("messages", Type.JSON, is_filter=False, in_table=False),
    ),
    identity=("conversation_id", "turn_id"),
    orders={"number": (int,)},
    reader="firefly_memory.conversations.looking:TurnReader",
    direct=_DIRECT,
    indexed=(("conversation_id",),),
    counted=((), ("conversation_id",)),
    needs=("conversation_id",),
    why_kept=_KEPT,
)

RESOURCES = (CONVERSATIONS, TURNS)
