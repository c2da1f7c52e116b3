"""``DelegationRouter``: a task goes to one of several agents, with a memory of its own for this task."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any

from pydantic_ai import AgentRunResult
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability

from firefly_memory.agents.capability import Memory, finished
from firefly_memory.agents.firefly_agent import FireflyAgent
from firefly_memory.agents.strategies import (
    AnyAgent,
    CapabilityStrategy,
    LeastBusyStrategy,
    RandomStrategy,
    RoundRobinStrategy,
    RouteRequest,
    Strategy,
)
from firefly_memory.errors import ConfigurationError, FireflyMemoryError
from firefly_memory.manager import MemoryManager

__all__ = [
    "AnyAgent",
    "CapabilityStrategy",
    "DelegationRouter",
    "LeastBusyStrategy",
    "RandomStrategy",
    "RoundRobinStrategy",
    "RouteRequest",
    "Strategy",
]

logger = logging.getLogger("firefly_memory")


class DelegationRouter:
    """``DelegationRouter([agent_a, agent_b], RoundRobinStrategy(), memory=manager)``.

    The agents are ours or pydantic-ai's. With ``memory``, each route gives the chosen agent a fork of it, for this run
    only: conversations are shared, the working memory is the route's own and is deleted when it ends. Without, agents
    use the memory that they have.
    """

    def __init__(
        self, agents: Sequence[AnyAgent], strategy: Strategy | None = None, *, memory: MemoryManager | None = None
    ) -> None:
        if not agents:
            raise ConfigurationError("a DelegationRouter needs at least one agent")
        self.agents = tuple(agents)
        self.strategy: Strategy = RoundRobinStrategy() if strategy is None else strategy
        self.memory = memory
        self._in_flight = [0] * len(self.agents)

    async def route(
        self,
        prompt: Any,
        *,
        conversation_id: str | None = None,
        tags: Iterable[str] = (),
        memory: MemoryManager | None = None,
        **options: Any,
    ) -> AgentRunResult[Any]:
        """Let one of the agents do it. ``options`` are those of ``Agent.run``.

        A ``memory`` that is given is used as it is, and nothing of it deleted: such as ``manager.fork("research")``,
        whose facts are looked at afterwards.
        """
        if isinstance(tags, str):
            raise ConfigurationError(f"tags must be several texts, not {tags!r}")
        index = await self._chosen(RouteRequest(prompt, frozenset(tags), conversation_id, tuple(self._in_flight)))
        self._in_flight[index] += 1
        try:
            async with own_scope(self.memory) if memory is None else nullcontext(memory) as scope:
                return await run_with(self.agents[index], prompt, scope, conversation_id=conversation_id, **options)
        finally:
            self._in_flight[index] -= 1

    async def _chosen(self, request: RouteRequest) -> int:
        chosen = self.strategy.select(self.agents, request)
        agent = await chosen if inspect.isawaitable(chosen) else chosen
        for index, each in enumerate(self.agents):
            if each is agent:
                return index
        raise ConfigurationError(f"{type(self.strategy).__name__} chose {agent!r}, which is none of the agents")


async def run_with(agent: AnyAgent, prompt: Any, memory: MemoryManager | None, **options: Any) -> AgentRunResult[Any]:
    """Run ``agent`` with ``memory`` for this run only: the agent is left as it is. Without, it uses its own."""
    capability = None if memory is None else memory_capability(agent, memory)
    return await run_with_capability(agent, prompt, capability, **options)


async def run_with_capability(
    agent: AnyAgent, prompt: Any, capability: Memory | None, **options: Any
) -> AgentRunResult[Any]:
    """Likewise, with the capability."""
    if capability is not None:
        given: Sequence[AbstractCapability[Any]] = options.pop("capabilities", None) or ()
        options["capabilities"] = [*given, capability]
    return await agent.run(prompt, **options)


def memory_capability(agent: AnyAgent, manager: MemoryManager) -> Memory:
    """``manager`` as the agent uses a memory: with the options of its own."""
    own = own_memory(agent)
    if own is not None:
        return replace(own, manager=manager)
    return agent.remembering(manager) if isinstance(agent, FireflyAgent) else Memory(manager)


def own_memory(agent: AnyAgent) -> Memory | None:
    """The capability that the agent was made with."""
    found: list[AbstractCapability[Any]] = []
    real: AbstractAgent[Any, Any] = agent.agent if isinstance(agent, FireflyAgent) else agent
    real.root_capability.apply(found.append)
    return next((each for each in found if isinstance(each, Memory)), None)


@asynccontextmanager
async def own_scope(memory: MemoryManager | None) -> AsyncIterator[MemoryManager | None]:
    """A fork of ``memory`` whose working memory lasts as long as this."""
    if memory is None:
        yield None
        return
    fork = memory.fork()
    try:
        yield fork
    finally:
        if await finished(_cleared(fork)):
            raise asyncio.CancelledError


async def _cleared(fork: MemoryManager) -> None:
    try:
        await fork.async_clear_working()
    except FireflyMemoryError:
        # What was to be done is done: facts that nobody can find are no reason to lose it.
        logger.exception("the facts of %r were not deleted", fork)
