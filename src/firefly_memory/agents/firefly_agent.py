"""``FireflyAgent``: an agent of pydantic-ai with a memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import NoneType
from typing import Any, cast

from pydantic_ai import Agent, AgentCapability
from pydantic_ai.agent import AbstractAgent, WrapperAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.output import OutputDataT, OutputSpec
from pydantic_ai.tools import AgentDepsT

from firefly_memory.agents.capability import Memory
from firefly_memory.agents.turn_recorder import OnConflict
from firefly_memory.errors import ConfigurationError
from firefly_memory.manager import MemoryManager
from firefly_memory.reprs import even_half_built


def memory_of(agent: AbstractAgent[Any, Any]) -> Memory | None:
    """The ``Memory`` among the capabilities of ``agent``."""
    return next((each for each in capabilities_of(agent) if isinstance(each, Memory)), None)


def capabilities_of(agent: AbstractAgent[Any, Any]) -> list[AbstractCapability[Any]]:
    """All capabilities of the agent, also those inside other capabilities."""
    found: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(found.append)
    return found


class FireflyAgent(WrapperAgent[AgentDepsT, OutputDataT]):
    """``FireflyAgent(name="assistant", model="openai:gpt-5.2", memory=manager)``.

    A thin layer: ``agent`` is the real :class:`pydantic_ai.Agent`, with the capability :class:`Memory`, and all that it
    can do this can do as well. ``memory`` may be a ``Memory`` too, for its other options. ``options`` are those of
    ``Agent``.
    """

    def __init__(
        self,
        *,
        name: str,
        model: Any = None,
        memory: MemoryManager | Memory | None = None,
        memory_tools: bool = False,
        on_conflict: OnConflict = "append",
        output_type: OutputSpec[OutputDataT] = cast("OutputSpec[OutputDataT]", str),  # noqa: B008 - a type
        deps_type: type[AgentDepsT] = cast("type[AgentDepsT]", NoneType),  # noqa: B008 - likewise
        capabilities: Sequence[AgentCapability[AgentDepsT]] = (),
        **options: Any,
    ) -> None:
        self._memory_options: dict[str, Any] = {"tools": memory_tools, "on_conflict": on_conflict}
        if isinstance(memory, Memory) and (memory_tools or on_conflict != "append"):
            raise ConfigurationError("memory_tools and on_conflict are options of the Memory that is given")
        own = memory if memory is None or isinstance(memory, Memory) else Memory(memory, **self._memory_options)
        self.agent: Agent[AgentDepsT, OutputDataT] = Agent(
            model,
            name=name,
            output_type=output_type,
            deps_type=deps_type,
            capabilities=[*([] if own is None else [own]), *capabilities],
            **options,
        )
        super().__init__(self.agent)

    def __getattr__(self, name: str) -> Any:
        """Any other attribute of the agent: the decorators ``tool``, ``instructions`` and others."""
        if name.startswith("_") or name == "agent":
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        return getattr(self.agent, name)

    @property
    def memory(self) -> MemoryManager | None:
        """The manager that the agent was made with."""
        own = memory_of(self)
        return None if own is None else own.manager

    @even_half_built
    def __repr__(self) -> str:
        return f"FireflyAgent(name={self.name!r}, memory={self.memory!r})"

    def remembering(self, memory: MemoryManager) -> Memory:
        """``memory`` with this agent's options, for one run: ``run(…, capabilities=[agent.remembering(memory)])``."""
        own = memory_of(self)
        return Memory(memory, **self._memory_options) if own is None else replace(own, manager=memory)
