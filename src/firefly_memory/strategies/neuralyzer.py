"""The long-term strategy ``neuralyzer``: the oldest interactions leave, and nothing replaces them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from firefly_memory.messages.interactions import CountMessage
from firefly_memory.strategies.base import LongTermMemoryStrategyBase, Threshold
from firefly_memory.strategies.rest import left_by


class NeuralyzerStrategy(LongTermMemoryStrategyBase):
    """Erases the history beyond a threshold, without a call of a model. With the defaults it never runs."""

    long_term_memory_id: Literal["neuralyzer"] = "neuralyzer"
    interaction_threshold_qty: Threshold = -1
    interaction_threshold_tokens: Threshold = -1
    delete: bool = False
    """Whether the turns of a stored conversation are deleted. By default they stay stored, out of every prompt, and can
    be restored."""

    @property
    def deletes(self) -> bool:
        """Whether the turns are deleted."""
        return self.delete

    def apply(
        self,
        messages: Sequence[Any],
        *,
        count: CountMessage | None = None,
        input_tokens: int | None = None,
        since: int = 0,
    ) -> list[Any]:
        """The messages that are left; if nothing is due, all messages. The arguments are those of :meth:`plan`."""
        return left_by(self.plan(messages, count=count, input_tokens=input_tokens, since=since), messages)

    async def async_apply(
        self,
        messages: Sequence[Any],
        *,
        count: CountMessage | None = None,
        input_tokens: int | None = None,
        since: int = 0,
    ) -> list[Any]:
        """The messages that are left; if nothing is due, all messages. The arguments are those of :meth:`plan`."""
        return self.apply(messages, count=count, input_tokens=input_tokens, since=since)
