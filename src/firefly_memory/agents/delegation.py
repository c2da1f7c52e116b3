"""``DelegationRouter``: gives a task to one of several agents, with a working memory for this task only."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any, Unpack

from pydantic_ai import AgentRunResult
from pydantic_ai.result import StreamedRunResult

from firefly_memory.agents.routing import (
    AnyAgent,
    CapabilityStrategy,
    LeastBusyStrategy,
    RandomStrategy,
    RoundRobinStrategy,
    RouteRequest,
    Strategy,
)
from firefly_memory.agents.run_options import RunOptions, own_scope, with_memory
from firefly_memory.errors import ConfigurationError
from firefly_memory.manager import MemoryManager
from firefly_memory.reprs import shown

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
        if not callable(getattr(strategy, "select", None)) and strategy is not None:
            raise ConfigurationError(f"a strategy has a method select(agents, request); {shown(strategy)} has none")
        self.agents: tuple[AnyAgent, ...] = tuple(agents)
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
        **options: Unpack[RunOptions],
    ) -> AgentRunResult[Any]:
        """Run one of the agents. ``options`` are those of ``Agent.run``.

        A ``memory`` that is given is used as it is, and nothing of it deleted: such as ``manager.fork("research")``,
        whose facts are looked at afterwards.
        """
        async with self._routed(prompt, conversation_id, tags, memory) as (agent, scope):
            given: dict[str, Any] = {"conversation_id": conversation_id, **options}
            return await agent.run(prompt, **with_memory(agent, scope, given))

    @asynccontextmanager
    async def route_stream(
        self,
        prompt: Any,
        *,
        conversation_id: str | None = None,
        tags: Iterable[str] = (),
        memory: MemoryManager | None = None,
        **options: Unpack[RunOptions],
    ) -> AsyncIterator[StreamedRunResult[Any, Any]]:
        """The same, as ``Agent.run_stream`` does it: ``async with router.route_stream(prompt) as stream``."""
        async with self._routed(prompt, conversation_id, tags, memory) as (agent, scope):
            given: dict[str, Any] = {"conversation_id": conversation_id, **options}
            async with agent.run_stream(prompt, **with_memory(agent, scope, given)) as stream:
                yield stream

    @asynccontextmanager
    async def _routed(
        self, prompt: Any, conversation_id: str | None, tags: Iterable[str], memory: MemoryManager | None
    ) -> AsyncIterator[tuple[AnyAgent, MemoryManager | None]]:
        """The chosen agent and its memory, while the route is running."""
        if isinstance(tags, str):
            raise ConfigurationError(f"tags must be several texts, not {shown(tags)}")
        index = await self._chosen(RouteRequest(prompt, frozenset(tags), conversation_id, tuple(self._in_flight)))
        self._in_flight[index] += 1
        try:
            async with own_scope(self.memory) if memory is None else nullcontext(memory) as scope:
                yield self.agents[index], scope
        finally:
            self._in_flight[index] -= 1

    async def _chosen(self, request: RouteRequest) -> int:
        chosen = self.strategy.select(self.agents, request)
        agent = await chosen if inspect.isawaitable(chosen) else chosen
        for index, each in enumerate(self.agents):
            if each is agent:
                return index
        raise ConfigurationError(f"{type(self.strategy).__name__} chose {shown(agent)}, which is none of the agents")
