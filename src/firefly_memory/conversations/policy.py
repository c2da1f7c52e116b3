"""Decides when the oldest turns of a conversation leave its window, and what of the window a model is sent.

These are the two protocols that a strategy implements. It changes nothing of how turns are stored:
:mod:`~firefly_memory.conversations.flushing` does what it decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.messages.tool_links import links_of
from firefly_memory.stores.base import EntryStore
from firefly_memory.tokens.estimator import TokenEstimator

Summarizing = Callable[[list[ConversationTurn]], Awaitable[Any]]

_MOST = 16_000
"""The approximate tokens for one call of a summarizer, unless the threshold asks for more."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is known of a window without reading a turn."""

    turns: int
    """The number of its turns."""
    tokens: int
    """The tokens of these turns."""
    input_tokens: int | None = None
    """The size of the prompt that the newest turn reports, 0 if it reports none; ``None`` if it was not read."""


@dataclass(frozen=True, slots=True)
class Live:
    """The turns of a window, oldest first, as far as they were read."""

    turns: Sequence[ConversationTurn]
    sizes: Sizes
    """The sizes of the whole window."""
    since: int
    """The number of the first turn after the last run of the strategy."""
    estimator: TokenEstimator

    @property
    def are_all(self) -> bool:
        """Whether all turns of the window were read, the newest included."""
        return len(self.turns) >= self.sizes.turns


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as a strategy sees it, and the way to its store in the mode of the caller."""

    conversation_id: str
    owner: str | None
    created_at: datetime | None
    """``None`` if it does not exist."""
    store: EntryStore
    is_blocking: bool
    """Whether the caller is blocking code: then a strategy calls blocking methods of the store and of what is on it."""
    awaited: Callable[[Awaitable[Any]], Awaitable[Any]]
    """Awaits what needs an event loop, such as a model: in that of the caller, or in a thread for blocking code."""
    kept: dict[str, object]
    """What strategies keep for the store, as long as the memory lasts."""


SearchMode = Literal["always", "tool"]


@runtime_checkable
class LongTerm(Protocol):
    """Decides which of the oldest turns leave the window, and what replaces them."""

    @property
    def kind(self) -> str:
        """Its name in the record of a flush."""

    @property
    def deletes(self) -> bool:
        """Whether the turns are deleted in the same change."""

    def check(self, store: EntryStore) -> None:
        """Raise an error if the strategy cannot work on this store."""

    def may_be_due(self, sizes: Sizes) -> bool:
        """Whether turns must leave now, as far as the sizes tell. If not, no turn is read."""

    def tokens_wanted(self, sizes: Sizes) -> int:
        """The approximate tokens of the oldest turns that :meth:`how_many` needs."""

    def how_many(self, live: Live) -> int:
        """How many of the oldest turns leave the window; 0 if nothing is due."""

    async def replacement(self, turns: list[ConversationTurn], conversation: Conversation, flush_id: str) -> str | None:
        """The text that replaces ``turns``, or ``None``. The first turn may be an earlier summary
        (``turn.is_summary``)."""

    @property
    def search_mode(self) -> SearchMode | None:
        """Whether :meth:`search` is asked with each new prompt, by a tool of the agent, or never."""

    async def search(self, query: str, conversation: Conversation) -> Sequence[str]:
        """What is found of the summaries and texts that are kept for conversations, the best first."""

    async def forget(self, conversation: Conversation) -> None:
        """Delete what was kept of a conversation that has been deleted."""


@runtime_checkable
class ShortTerm(Protocol):
    """Decides what of the window a model is sent."""

    def select(self, turns: Sequence[ConversationTurn], estimator: TokenEstimator) -> Sequence[ConversationTurn]:
        """The turns to send, in order: some of ``turns``, each with all of its messages or with some of them. No tool
        call may be parted from its result. Nothing that is stored changes."""


@dataclass(frozen=True, slots=True)
class ThresholdPolicy:
    """Above ``threshold`` tokens, the oldest turns are summarized until half of it is left. A tool call and its result
    stay together."""

    threshold: int
    summarizer: Summarizing

    kind = "threshold"
    deletes = False

    def check(self, store: EntryStore) -> None:
        """It works on every store."""

    def may_be_due(self, sizes: Sizes) -> bool:
        return sizes.tokens > self.threshold and sizes.turns > 1  # the newest turn is never summarized

    def tokens_wanted(self, sizes: Sizes) -> int:
        return min(sizes.tokens - self.threshold // 2, max(4 * self.threshold, _MOST))

    def how_many(self, live: Live) -> int:
        overdue = live.sizes.tokens > 2 * self.threshold
        at_most = len(live.turns) - live.are_all
        return how_many_to_evict(live.turns, at_most, self.tokens_wanted(live.sizes), overdue)

    search_mode = None

    async def search(self, query: str, conversation: Conversation) -> Sequence[str]:
        return ()

    async def forget(self, conversation: Conversation) -> None:
        """Nothing is kept."""

    async def replacement(
        self,
        turns: list[ConversationTurn],
        conversation: Conversation,
        flush_id: str,
    ) -> str:
        summary = await self.summarizer(turns)
        if not isinstance(summary, str) or not summary.strip():
            raise TypeError(f"the summarizer returned {summary!r} instead of text")
        return summary


def how_many_to_evict(turns: Sequence[ConversationTurn], at_most: int, due: int, overdue: bool) -> int:
    """How many of these oldest turns to summarize, for about ``due`` tokens, without separating a call from its result.

    A call that is still open may be answered in a turn to come, so it is kept, but not for ever.
    """
    links = links_of(turn.raw_messages for turn in turns)
    if links.open_calls and not overdue:
        at_most = min(at_most, links.open_calls[0])
    tied: set[int] = set()  # the numbers of turns before which one cannot stop
    for call, result in links.pairs:
        tied.update(range(call + 1, result + 1))
    count = best = tokens = 0
    while count < at_most and (tokens < due or count in tied):
        tokens += turns[count].token_estimate
        count += 1
        if count not in tied:
            best = count
    return best
