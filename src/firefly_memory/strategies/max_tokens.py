"""The short-term strategy ``max_tokens``: the newest interactions that fit a budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from firefly_memory.messages.interactions import CountMessage
from firefly_memory.strategies.base import ShortTermMemoryStrategyBase
from firefly_memory.strategies.conditions import Condition
from firefly_memory.strategies.planning import KeepPlan, keep_within


class MemoryMaxTokensStrategy(ShortTermMemoryStrategyBase):
    """Walks the conversation backwards, and keeps whole interactions while they fit ``memory_max_tokens``.

    An exact fit stays. The first interaction that does not fit ends the walk: if it is the newest one, no interaction
    is kept. Messages of the system always stay and are not counted.
    """

    memory_strategy_id: Literal["max_tokens"] = "max_tokens"
    memory_max_tokens: Annotated[int, Field(ge=-1)] = 10000
    """The budget in tokens. -1 and 0 include nothing."""
    conditions: list[Condition] = Field(default_factory=list)
    """A message stays if it passes every condition. A tool call goes with its result."""

    def plan(self, messages: Sequence[Any], count: CountMessage | None = None) -> KeepPlan:
        return keep_within(messages, self.memory_max_tokens, self.conditions, count)

    @property
    def looks_at_messages(self) -> bool:
        """Conditions are about messages."""
        return bool(self.conditions)
