"""How a :class:`~firefly_memory.agents.delegation.DelegationRouter` chooses among its agents."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Any, Protocol, TypeAlias

from pydantic_ai.agent import AbstractAgent

from firefly_memory.agents.run_messages import prompt_text
from firefly_memory.errors import ConfigurationError

AnyAgent: TypeAlias = AbstractAgent[Any, Any]
"""A ``FireflyAgent``, or an agent of pydantic-ai."""


@dataclass(frozen=True)
class RouteRequest:
    """A prompt to be routed to an agent."""

    prompt: Any
    tags: frozenset[str] = frozenset()
    """The tags that the agent must have."""
    conversation_id: str | None = None
    in_flight: tuple[int, ...] = ()
    """The number of running routes of each agent, in the order of the agents."""

    @property
    def text(self) -> str:
        """The prompt's text."""
        return prompt_text(self.prompt)


class Strategy(Protocol):
    """Chooses one of the agents."""

    def select(self, agents: Sequence[AnyAgent], request: RouteRequest) -> AnyAgent | Awaitable[AnyAgent]:
        """Return one of ``agents``, or an awaitable of it. Many tasks may call this at once."""
        ...


class RoundRobinStrategy:
    """Chooses the agents in turn."""

    def __init__(self) -> None:
        self._turns = count()

    def select(self, agents: Sequence[AnyAgent], request: RouteRequest) -> AnyAgent:
        """The next agent."""
        return agents[next(self._turns) % len(agents)]


class RandomStrategy:
    """Chooses agents at random. The same ``seed`` gives the same order."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = Random(seed)  # noqa: S311 - nothing depends on its being unforeseeable

    def select(self, agents: Sequence[AnyAgent], request: RouteRequest) -> AnyAgent:
        """A random agent."""
        return self._random.choice(agents)


class LeastBusyStrategy:
    """Chooses the agent with the fewest running routes, and the first of several such agents."""

    def select(self, agents: Sequence[AnyAgent], request: RouteRequest) -> AnyAgent:
        """The agent with the fewest running routes."""
        return agents[min(range(len(agents)), key=request.in_flight.__getitem__)]


class CapabilityStrategy:
    """Chooses by tags: ``CapabilityStrategy({"translator": ["translate", "french"], "coder": ["code"]})``.

    A request with tags goes to an agent that has them all, another to the agent most of whose tags, of one word or
    several, are in the prompt. Among those that fit equally well, the strategy ``among`` chooses, by default in turns.
    If nobody fits, ``ConfigurationError`` is raised.
    """

    def __init__(self, capabilities: Mapping[str, Iterable[str]], among: Strategy | None = None) -> None:
        if wrong := [name for name, tags in capabilities.items() if isinstance(tags, str)]:
            raise ConfigurationError(f"the tags of {wrong[0]!r} must be several texts, not one")
        self.capabilities: dict[str, frozenset[str]] = {name: _folded(tags) for name, tags in capabilities.items()}
        self.among: Strategy = RoundRobinStrategy() if among is None else among

    def select(self, agents: Sequence[AnyAgent], request: RouteRequest) -> AnyAgent | Awaitable[AnyAgent]:
        """One of the agents with the most matching tags."""
        if strangers := self.capabilities.keys() - {agent.name for agent in agents}:
            names = [agent.name for agent in agents]
            raise ConfigurationError(f"no agent is named {sorted(strangers)}; they are named {names}")
        fits = [self._fit(agent, request) for agent in agents]
        best = max(fits)
        if best == 0:
            wanted = sorted(request.tags) or "any word of the prompt"
            raise ConfigurationError(f"no agent can do {wanted}; they can: {self._offered(agents)}")
        fitting = [index for index, fit in enumerate(fits) if fit == best]
        busy = tuple(request.in_flight[index] for index in fitting) if request.in_flight else ()
        return self.among.select([agents[index] for index in fitting], replace(request, in_flight=busy))

    def _fit(self, agent: AnyAgent, request: RouteRequest) -> int:
        tags = self.capabilities.get(str(agent.name), frozenset())
        if request.tags:
            return int(_folded(request.tags) <= tags)
        text = request.text.casefold()
        return sum(re.search(rf"(?<!\w){re.escape(tag)}(?!\w)", text) is not None for tag in tags)

    def _offered(self, agents: Sequence[AnyAgent]) -> dict[str, list[str]]:
        return {str(agent.name): sorted(self.capabilities.get(str(agent.name), ())) for agent in agents}


def _folded(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(text.casefold() for text in texts)
