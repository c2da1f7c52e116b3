"""Decides when the oldest turns of a conversation leave its window, which of them, and what text replaces them.

The protocol is what :mod:`~firefly_memory.conversations.eviction` asks. A strategy implements it, and changes nothing
of how turns are stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.messages.tool_links import links_of

Summarizing = Callable[[list[ConversationTurn]], Awaitable[Any]]

_MOST = 16_000
"""The approximate tokens for one call of a summarizer, unless the threshold asks for more."""


class EvictionPolicy(Protocol):
    """Decides, but reads and writes nothing. "Live" turns are those that no summary replaces."""

    def is_due(self, live_tokens: int) -> bool:
        """Whether turns must leave the window now."""

    def tokens_wanted(self, live_tokens: int) -> int:
        """The approximate tokens of the oldest live turns that the policy needs."""

    def how_many(self, turns: Sequence[ConversationTurn], at_most: int, live_tokens: int) -> int:
        """How many of these oldest turns leave the window. ``at_most`` keeps the newest turn in it."""

    async def replace(self, turns: list[ConversationTurn]) -> Any:
        """The text that replaces ``turns``. The first turn may be an earlier summary (``turn.is_summary``)."""


@dataclass(frozen=True, slots=True)
class ThresholdPolicy:
    """Above ``threshold`` tokens, the oldest turns are summarized until half of it is left. A tool call and its result
    stay together."""

    threshold: int
    summarizer: Summarizing

    def is_due(self, live_tokens: int) -> bool:
        return live_tokens > self.threshold

    def tokens_wanted(self, live_tokens: int) -> int:
        return min(live_tokens - self.threshold // 2, max(4 * self.threshold, _MOST))

    def how_many(self, turns: Sequence[ConversationTurn], at_most: int, live_tokens: int) -> int:
        overdue = live_tokens > 2 * self.threshold
        return how_many_to_evict(turns, at_most, self.tokens_wanted(live_tokens), overdue)

    async def replace(self, turns: list[ConversationTurn]) -> Any:
        return await self.summarizer(turns)


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
