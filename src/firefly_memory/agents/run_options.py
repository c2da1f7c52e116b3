"""Runs an agent with a memory for one run only."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

from pydantic_ai.capabilities import AbstractCapability, DynamicCapability

from firefly_memory.agents.capability import Memory
from firefly_memory.agents.firefly_agent import FireflyAgent, capabilities_of, memory_of
from firefly_memory.agents.routing import AnyAgent
from firefly_memory.concurrency.cancellation import finished
from firefly_memory.errors import FireflyMemoryError
from firefly_memory.manager import MemoryManager

if TYPE_CHECKING:
    from pydantic_ai import (
        AgentCapability,
        AgentModelSettings,
        AgentRetries,
        AgentSpec,
        DeferredToolResults,
        ModelMessage,
        RunUsage,
        UsageLimits,
    )
    from pydantic_ai._instructions import AgentInstructions
    from pydantic_ai.agent import EventStreamHandler
    from pydantic_ai.agent.abstract import AgentMetadata
    from pydantic_ai.models import KnownModelName, Model
    from pydantic_ai.output import OutputSpec
    from pydantic_ai.toolsets import AbstractToolset

logger = logging.getLogger("firefly_memory")


class RunOptions(TypedDict, total=False):
    """The options of ``Agent.run``, for what runs an agent. They are passed on as they are."""

    output_type: OutputSpec[Any] | None
    conversation: Any
    message_history: Sequence[ModelMessage] | None
    deferred_tool_results: DeferredToolResults | None
    run_id: str | None
    model: Model | KnownModelName | str | None
    instructions: AgentInstructions[Any]
    deps: Any
    model_settings: AgentModelSettings[Any] | None
    usage_limits: UsageLimits | None
    cancellation_token: Any
    timeout: float | None
    usage: RunUsage | None
    metadata: AgentMetadata[Any] | None
    retries: int | AgentRetries | None
    infer_name: bool
    toolsets: Sequence[AbstractToolset[Any]] | None
    event_stream_handler: EventStreamHandler[Any] | None
    capabilities: Sequence[AgentCapability[Any]] | None
    workspace: Any
    spec: dict[str, Any] | AgentSpec | None


class StepOptions(RunOptions, total=False):
    """The same for a step, which may have a conversation of its own."""

    conversation_id: str | None


def with_memory(agent: AnyAgent, memory: MemoryManager | None, options: dict[str, Any]) -> dict[str, Any]:
    """The options of one run of ``agent`` with ``memory``. Without ``memory`` the agent uses its own."""
    return with_capability(None if memory is None else memory_capability(agent, memory), options)


def with_capability(capability: Memory | None, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a run with ``capability`` in addition."""
    # An agent without a name would take that of a variable of ours.
    options = {"infer_name": False, **options}
    if capability is not None:
        given: Sequence[AbstractCapability[Any]] = options.get("capabilities") or ()
        options["capabilities"] = [*given, capability]
    return options


def memory_capability(agent: AnyAgent, manager: MemoryManager) -> Memory:
    """A ``Memory`` of ``manager`` with the options of the agent's own ``Memory``."""
    if isinstance(agent, FireflyAgent):
        return agent.remembering(manager)
    own = memory_of(agent)
    return Memory(manager) if own is None else replace(own, manager=manager)


def has_dynamic_capabilities(agent: AnyAgent) -> bool:
    """Whether the agent makes some capabilities anew for each run."""
    return any(isinstance(each, DynamicCapability) for each in capabilities_of(agent))


@asynccontextmanager
async def own_scope(memory: MemoryManager | None) -> AsyncIterator[MemoryManager | None]:
    """A fork of ``memory``, whose working memory is deleted at the end of the ``with`` block."""
    if memory is None:
        yield None
        return
    fork = memory.fork()
    try:
        yield fork
    finally:
        await finished(_cleared(fork))


async def _cleared(fork: MemoryManager) -> None:
    try:
        await fork.async_clear_working()
    except FireflyMemoryError:
        # What was to be done is done: facts that nobody can find are no reason to lose it.
        logger.exception("the facts of %r were not deleted", fork)
