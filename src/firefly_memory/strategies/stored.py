"""What makes a strategy work on stored conversations: its half of :mod:`firefly_memory.conversations.policy`."""

from __future__ import annotations

from asyncio import timeout
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

from firefly_memory.conversations.flushing import LEASE
from firefly_memory.conversations.policy import Conversation, Live, SearchMode, Sizes
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.strategies.on_turns import (
    count_as_stored,
    kept_turns,
    may_be_due,
    messages_of,
    planning_of,
    turns_that_leave,
)
from firefly_memory.tokens.estimator import TokenEstimator

if TYPE_CHECKING:
    from firefly_memory.messages.interactions import CountMessage
    from firefly_memory.stores.base import EntryStore
    from firefly_memory.strategies.planning import FlushPlan, KeepPlan, Triggers


async def _in_time(summary: Awaitable[str | None]) -> str | None:
    """Wait for a summary as long as no other writer makes one."""
    limit = timeout(LEASE.total_seconds())
    try:
        async with limit:
            return await summary
    except TimeoutError as exc:
        if not limit.expired():
            raise
        raise TimeoutError(f"there was no summary after {LEASE}") from exc


class SelectsTurns:
    """A short-term strategy on a stored conversation."""

    if TYPE_CHECKING:

        def plan(self, messages: Sequence[Any], count: CountMessage | None = None) -> KeepPlan: ...

    @property
    def looks_at_messages(self) -> bool:
        """Whether messages are left out one by one, and not only as whole interactions."""
        return False

    def select(self, turns: Sequence[ConversationTurn], estimator: TokenEstimator) -> Sequence[ConversationTurn]:
        """The turns to send, each with its messages that stay."""
        given = messages_of(turns)
        count = count_as_stored(turns, given, estimator, each=self.looks_at_messages)
        return kept_turns(self.plan(given.messages, count), given, turns, estimator)


class FlushesTurns:
    """A long-term strategy on a stored conversation. A stored turn counts as one interaction until it is read."""

    if TYPE_CHECKING:
        long_term_memory_id: str

        def triggers(self) -> Triggers: ...

        def plan(
            self,
            messages: Sequence[Any],
            *,
            count: CountMessage | None = None,
            input_tokens: int | None = None,
            since: int = 0,
        ) -> FlushPlan: ...

    @property
    def kind(self) -> str:
        """The id of the strategy, in the record of a flush."""
        return self.long_term_memory_id

    @property
    def deletes(self) -> bool:
        """Whether the turns are deleted."""
        return False

    def check(self, store: EntryStore) -> None:
        """Raise an error if the strategy cannot work on this store."""

    def may_be_due(self, sizes: Sizes) -> bool:
        """Whether a trigger may fire, as far as the sizes tell."""
        return may_be_due(self.triggers(), sizes)

    def tokens_wanted(self, sizes: Sizes) -> int:
        """All of them."""
        return sizes.tokens

    def how_many(self, live: Live) -> int:
        """How many of the oldest turns leave."""
        planning = planning_of(live, with_conditions=bool(self.triggers().conditions))
        plan = self.plan(
            planning.given.messages,
            count=planning.count,
            input_tokens=planning.input_tokens,
            since=planning.since,
        )
        return turns_that_leave(plan, planning.given, live.turns)

    async def replacement(
        self,
        turns: list[ConversationTurn],
        conversation: Conversation,
        flush_id: str,
    ) -> str | None:
        """The text that replaces ``turns``: what :meth:`async_summary` makes of their messages."""
        earlier = [turn.assistant_response for turn in turns if turn.is_summary]
        messages = messages_of([turn for turn in turns if not turn.is_summary]).messages
        summary: str | None = await conversation.awaited(
            _in_time(self.async_summary(messages, earlier="\n\n".join(earlier) or None))
        )
        return summary

    async def async_summary(
        self,
        messages: Sequence[Any],
        *,
        earlier: str | None = None,
    ) -> str | None:
        """The text that replaces ``messages``, or ``None`` if nothing does. ``earlier`` is the summary before, which is
        replaced as well."""
        return None

    @property
    def search_mode(self) -> SearchMode | None:
        """How the knowledge base is searched, if there is one."""
        return None

    async def search(self, query: str, conversation: Conversation) -> Sequence[str]:
        """What is found in the knowledge base."""
        return ()

    async def forget(self, conversation: Conversation) -> None:
        """Delete what the knowledge base has of a conversation."""
