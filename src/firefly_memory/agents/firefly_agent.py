"""``FireflyAgent``: an agent of pydantic-ai with a memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypedDict, Unpack

from pydantic_ai import Agent, AgentCapability
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.output import OutputDataT, OutputSpec
from pydantic_ai.tools import AgentDepsT

from firefly_memory.agents.capability import Memory
from firefly_memory.agents.turn_recorder import OnConflict
from firefly_memory.errors import ConfigurationError
from firefly_memory.manager import MemoryManager
from firefly_memory.reprs import even_half_built

if TYPE_CHECKING:
    from pydantic_ai import AgentModelSettings, AgentRetries, AgentToolset, EndStrategy, RunContext, TemplateStr, Tool
    from pydantic_ai._instructions import AgentInstructions  # the public name of it has lost its parameter
    from pydantic_ai.agent.abstract import AgentMetadata
    from pydantic_ai.concurrency import AnyConcurrencyLimit
    from pydantic_ai.models import KnownModelName, Model
    from pydantic_ai.tools import ToolFuncEither


def memory_of(agent: AbstractAgent[Any, Any]) -> Memory | None:
    """The ``Memory`` among the capabilities of ``agent``."""
    return next((each for each in capabilities_of(agent) if isinstance(each, Memory)), None)


def capabilities_of(agent: AbstractAgent[Any, Any]) -> list[AbstractCapability[Any]]:
    """All capabilities of the agent, also those inside other capabilities."""
    found: list[AbstractCapability[Any]] = []
    agent.root_capability.apply(found.append)
    return found


class AgentOptions(TypedDict, Generic[AgentDepsT], total=False):
    """The other options of :class:`pydantic_ai.Agent`. They are passed on as they are."""

    instructions: AgentInstructions[AgentDepsT]
    system_prompt: str | Sequence[str]
    description: TemplateStr[AgentDepsT] | str | None
    model_settings: AgentModelSettings[AgentDepsT] | None
    retries: int | AgentRetries | None
    validation_context: Any | Callable[[RunContext[AgentDepsT]], Any]
    tools: Sequence[Tool[AgentDepsT] | ToolFuncEither[AgentDepsT, ...]]
    toolsets: Sequence[AgentToolset[AgentDepsT]] | None
    defer_model_check: bool
    end_strategy: EndStrategy
    metadata: AgentMetadata[AgentDepsT] | None
    tool_timeout: float | None
    max_concurrency: AnyConcurrencyLimit


class FireflyAgent(Agent[AgentDepsT, OutputDataT]):
    """``FireflyAgent(name="assistant", model="openai:gpt-5.2", memory=manager)``.

    A :class:`pydantic_ai.Agent` with the capability :class:`Memory`. ``memory`` may be a ``Memory`` too, for its other
    options. ``options`` are those of ``Agent``.
    """

    def __init__(
        self,
        *,
        name: str,
        model: Model | KnownModelName | str | None = None,
        memory: MemoryManager | Memory | None = None,
        memory_tools: bool = False,
        on_conflict: OnConflict = "append",
        output_type: OutputSpec[OutputDataT] = str,  # type: ignore[assignment] # with a cast Pyright infers nothing
        deps_type: type[AgentDepsT] = object,  # type: ignore[assignment]
        capabilities: Sequence[AgentCapability[AgentDepsT]] | None = None,
        **options: Unpack[AgentOptions[AgentDepsT]],
    ) -> None:
        self._memory_options: dict[str, Any] = {"tools": memory_tools, "on_conflict": on_conflict}
        if isinstance(memory, Memory) and (memory_tools or on_conflict != "append"):
            raise ConfigurationError("memory_tools and on_conflict are options of the Memory that is given")
        own = memory if memory is None or isinstance(memory, Memory) else Memory(memory, **self._memory_options)
        super().__init__(
            model,
            name=name,
            output_type=output_type,
            deps_type=deps_type,
            capabilities=[*([] if own is None else [own]), *(capabilities or ())],
            **options,
        )

    @property
    def agent(self) -> Agent[AgentDepsT, OutputDataT]:
        """The agent itself, as an :class:`pydantic_ai.Agent`."""
        return self

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
