"""The bases of the strategies, and their fields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from firefly_memory.messages.interactions import CountMessage, group
from firefly_memory.messages.usage import reported_input_tokens
from firefly_memory.strategies.conditions import Condition
from firefly_memory.strategies.planning import FlushPlan, KeepPlan, Triggers, plan_flush
from firefly_memory.strategies.stored import FlushesTurns, SelectsTurns
from firefly_memory.validation import at_least

Threshold = Annotated[int, Field(ge=-1)]
ToolName = Annotated[str, Field(min_length=1)]


class Configuration(BaseModel):
    """A part of the configuration: it refuses unknown fields, and never changes."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ShortTermMemoryStrategyBase(SelectsTurns, Configuration, ABC):
    """Decides which messages a prompt has. Nothing that is stored changes.

    A subclass names its ``memory_strategy_id`` and implements :meth:`plan`.
    """

    memory_strategy_id: str
    """The name of the strategy. JSON and YAML need it."""

    @abstractmethod
    def plan(self, messages: Sequence[Any], count: CountMessage | None = None) -> KeepPlan:
        """What is sent of ``messages``, which may be of any library. ``count`` gives the tokens of one message; the
        default is the library's estimator."""

    def apply(self, messages: Sequence[Any], count: CountMessage | None = None) -> list[Any]:
        """The messages that :meth:`plan` keeps."""
        return list(self.plan(messages, count).messages)


class LongTermMemoryStrategyBase(FlushesTurns, Configuration, ABC):
    """Runs when a conversation is longer than a threshold, and takes the oldest interactions out of it.

    A subclass names its ``long_term_memory_id`` and implements :meth:`async_apply`. The triggers combine by *any*; a
    threshold of 0 or less is off.
    """

    long_term_memory_id: str
    """The name of the strategy. JSON and YAML need it."""
    input_tokens_threshold: Threshold = 0
    """The strategy runs when the prompt of the last call of the model had more tokens."""
    interaction_keep: Annotated[int, Field(ge=0)] = 0
    """How many of the newest interactions stay."""
    interaction_conditions: list[Condition] = Field(default_factory=list)
    """Which interactions count for the two thresholds below: those with a message that passes every condition."""
    interaction_threshold_qty: Threshold = 0
    """The strategy runs from this number of interactions on."""
    interaction_threshold_tokens: Threshold = 0
    """The strategy runs from this number of tokens of interactions on."""
    on_tools_success_threshold: list[ToolName] = Field(default_factory=list)
    """The strategy runs when one of these tools has succeeded since the last run."""
    on_tools_error_threshold: list[ToolName] = Field(default_factory=list)
    """The strategy runs when one of these tools has failed since the last run."""

    def plan(
        self,
        messages: Sequence[Any],
        *,
        count: CountMessage | None = None,
        input_tokens: int | None = None,
        since: int = 0,
    ) -> FlushPlan:
        """Which messages leave.

        ``count`` gives the tokens of one message; the default is the library's estimator. ``input_tokens`` is the size
        of the prompt that the last call of the model reported; the messages of pydantic-ai know it themselves.
        ``since`` is the index of the first message after the last run: older tool results trigger nothing.
        """
        at_least(0, "since", since)
        if input_tokens is None and self.input_tokens_threshold > 0:
            input_tokens = reported_input_tokens(messages)
        triggers = self.triggers()
        return plan_flush(
            group(messages), triggers, self.interaction_keep, count=count, input_tokens=input_tokens, since=since
        )

    def triggers(self) -> Triggers:
        """The fields that decide whether the strategy runs."""
        return Triggers(
            self.input_tokens_threshold,
            self.interaction_threshold_qty,
            self.interaction_threshold_tokens,
            self.interaction_conditions,
            self.on_tools_success_threshold,
            self.on_tools_error_threshold,
        )

    @abstractmethod
    async def async_apply(
        self,
        messages: Sequence[Any],
        *,
        count: CountMessage | None = None,
        input_tokens: int | None = None,
        since: int = 0,
    ) -> list[Any]:
        """The messages that are left, and what replaces the others. The arguments are those of :meth:`plan`."""
