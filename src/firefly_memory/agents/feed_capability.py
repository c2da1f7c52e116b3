"""``feed_memory``: a capability of pydantic-ai that gives an agent the memory that it has in a team."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, TypeAlias

from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.capabilities.abstract import WrapRunHandler
from pydantic_ai.messages import ModelMessage, ModelResponse

from firefly_memory.agents.feed_reader import Reader, Role, checked_role, json_value
from firefly_memory.agents.feed_writer import Writer
from firefly_memory.agents.run_hooks import RunHooks
from firefly_memory.agents.run_messages import response_text, value_text
from firefly_memory.agents.run_state import RunState
from firefly_memory.concurrency.cancellation import finished
from firefly_memory.errors import ConfigurationError, ConflictError, InvalidEntryError
from firefly_memory.feeds.history_filters import HistoryFilter
from firefly_memory.feeds.items import Messages
from firefly_memory.feeds.memories.base_memory import BaseMemory
from firefly_memory.feeds.memories.budget import tool_call_id_of
from firefly_memory.messages.storage import sendable
from firefly_memory.reprs import shown

logger = logging.getLogger("firefly_memory")

FilterContext: TypeAlias = Mapping[str, Any] | Callable[[RunContext[Any]], Mapping[str, Any] | None]


def feed_memory(
    memory: BaseMemory,
    *,
    role: Role = "assistant",
    filter: HistoryFilter | None = None,  # noqa: A002 - what it is
    context: FilterContext | None = None,
) -> AbstractCapability[Any]:
    """``Agent(model, capabilities=[feed_memory(memory)])``: the agent works with the memory that it has in a team.

    Before a run the history of the memory is read, and becomes the run's ``message_history`` as
    :func:`to_model_messages` says. A ``filter`` chooses messages of it; ``context``, or a function of the run's context
    that returns it, has facts for the filter. After the run its own messages are added to the memory as
    :func:`from_model_messages` says, in their order and in one step if the memory can: also if the run was streamed,
    failed, was cancelled, or waits for a tool. A result that is no text of the model is added as the last message. So
    do not add the prompt and the answer yourself.

    A ``message_history`` passed to a run is used in place of the memory's. A memory that is not ``writable`` is only
    read. A value of a tool that a store would refuse is added as text. If adding fails, the log says so, and the
    caller gets the result; a ``ConflictError`` is raised, with the result in ``error.result``.
    """
    return FeedMemory(memory, role=role, filter=filter, context=context)


@dataclass
class FeedMemory(RunHooks):
    """What :func:`feed_memory` makes."""

    CALLED: ClassVar[str] = "feed_memory"
    memory: BaseMemory
    _: KW_ONLY
    id: str | None = "firefly_feed_memory"
    role: Role = "assistant"
    filter: HistoryFilter | None = None
    context: FilterContext | None = None
    _run: RunState = field(init=False, repr=False, compare=False, default_factory=RunState)
    _all: Messages = field(init=False, repr=False, compare=False, default_factory=list)
    _chosen: Messages = field(init=False, repr=False, compare=False, default_factory=list)

    def __post_init__(self) -> None:
        if not isinstance(self.memory, BaseMemory):
            raise ConfigurationError(
                f"feed_memory needs a memory of firefly_memory.feeds, not {type(self.memory).__name__}: derive your "
                "own from BaseMemory; for a MemoryManager take Memory(manager)"
            )
        checked_role(self.role)
        if self.filter is not None and (
            isinstance(self.filter, type) or not callable(getattr(self.filter, "filter_for_prompt", None))
        ):
            raise ConfigurationError(
                "filter must be an object with a method filter_for_prompt(history, context), such as "
                f"WorkerHistoryFilter(), not {shown(self.filter)}"
            )
        if not (self.context is None or isinstance(self.context, Mapping) or callable(self.context)):
            raise ConfigurationError(
                f"context must be a mapping or a function of the run's context, not {shown(self.context)}"
            )

    async def for_run(self, ctx: RunContext[Any]) -> FeedMemory:
        """A copy with the state of one run."""
        own = copy(self)
        own._run = RunState()  # noqa: SLF001 - a copy of this
        return own

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Read the history, run the agent, add its messages."""
        self._check_alone(ctx)
        await self._read(ctx)
        result = await self._result(handler, lambda: self._add_what_was_said(ctx))
        await finished(self._add_messages(ctx, result))
        return result

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        """Prepare the history, with the calls that a run with ``deferred_tool_results`` answers."""
        if Agent.is_user_prompt_node(node) and node.deferred_tool_results is not None and self._all:
            ids = {*node.deferred_tool_results.calls, *node.deferred_tool_results.approvals}
            needed = [each for each in self._all if tool_call_id_of(each) in ids]
            left_out = [each for each in needed if all(each is not chosen for chosen in self._chosen)]
            ctx.messages[:] = Writer([*self._chosen, *left_out], self.memory.agent_key, ids).write()
        return await super().before_node_run(ctx, node=node)

    async def _read(self, ctx: RunContext[Any]) -> None:
        if not ctx.messages:
            self._all = self._chosen = await self.memory.get_history()
            if self.filter is not None:
                context = self.context(ctx) if callable(self.context) else self.context
                self._chosen = self.filter.filter_for_prompt(self._all, context)
        self._run.replay(Writer(self._chosen, self.memory.agent_key).write(), ctx.messages)

    async def _add_messages(self, ctx: RunContext[Any], result: AgentRunResult[Any]) -> None:
        try:
            await self._add(ctx, self._run.said(result, ctx), result)
        except ConflictError as conflict:
            conflict.result = result
            raise
        except Exception:
            logger.exception("the messages of run %s were not added to %r", ctx.run_id, self.memory)

    async def _add_what_was_said(self, ctx: RunContext[Any]) -> None:
        try:
            await self._add(ctx, self._run.said_so_far(ctx), None)
        except Exception:
            logger.exception("the messages of a run that broke off were not added to %r", self.memory)

    async def _add(
        self, ctx: RunContext[Any], messages: Sequence[ModelMessage], result: AgentRunResult[Any] | None
    ) -> None:
        if not self.memory.writable:
            return
        reader = Reader(
            self.memory.agent_key,
            self.role,
            is_of_a_person=lambda part: part.content == ctx.prompt,
            value=_value_or_text,
            has_ended=result is not None,
        )
        said = reader.read(messages)
        if result is not None and _is_no_text(messages, result.output):
            worker = self.role == "worker"
            said.append(reader.answer(result.output if worker else response_text(result.output)))
        if said:
            await self.memory.add_many(said)


def _is_no_text(messages: Sequence[ModelMessage], output: Any) -> bool:
    """Whether the result of a run is in no text of the model: a tool or a function gave it."""
    if output is None or isinstance(output, DeferredToolRequests):
        return False
    last = next((each for each in reversed(messages) if isinstance(each, ModelResponse)), None)
    if last is None:
        return False
    kinds = {part.part_kind for part in last.parts}
    return "tool-call" in kinds or "text" not in kinds


def _value_or_text(value: Any, path: str) -> Any:
    try:
        return json_value(value, path)
    except InvalidEntryError:
        return sendable(value_text(value))
