"""``FireflyAgent``: an agent of pydantic-ai with a memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from pydantic_ai import Agent, AgentRunResult
from pydantic_ai.capabilities import AbstractCapability

from firefly_memory.agents.capability import Memory, OnConflict
from firefly_memory.manager import MemoryManager


class FireflyAgent:
    """A thin layer: ``agent`` is the real :class:`pydantic_ai.Agent`, with the capability :class:`Memory`.

    ``options`` are those of ``Agent``.
    """

    def __init__(
        self,
        *,
        name: str,
        model: Any = None,
        memory: MemoryManager | None = None,
        memory_tools: bool = False,
        on_conflict: OnConflict = "append",
        capabilities: Sequence[AbstractCapability[Any]] = (),
        **options: Any,
    ) -> None:
        self.name = name
        self.memory = memory
        self._made_of: dict[str, Any] = {
            **options,
            "name": name,
            "model": model,
            "memory_tools": memory_tools,
            "on_conflict": on_conflict,
            "capabilities": capabilities,
        }
        own = [] if memory is None else [self.remembering(memory)]
        self.agent: Agent[Any, Any] = Agent(model, name=name, capabilities=[*own, *capabilities], **options)

    def __repr__(self) -> str:
        return f"FireflyAgent(name={self.name!r}, memory={self.memory!r})"

    def with_memory(self, memory: MemoryManager | None) -> FireflyAgent:
        """The same agent with another memory. This one stays as it is."""
        return FireflyAgent(memory=memory, **self._made_of)

    def remembering(self, memory: MemoryManager) -> Memory:
        """``memory`` as this agent uses one; for one run only: ``run(…, capabilities=[agent.remembering(memory)])``."""
        made_of = self._made_of
        return Memory(memory, tools=made_of["memory_tools"], on_conflict=made_of["on_conflict"])

    async def run(
        self, prompt: Any = None, *, conversation_id: str | None = None, **options: Any
    ) -> AgentRunResult[Any]:
        """``Agent.run``: the conversation is loaded before, and its new turn stored after."""
        return await self.agent.run(prompt, conversation_id=conversation_id, **options)

    def run_sync(
        self, prompt: Any = None, *, conversation_id: str | None = None, **options: Any
    ) -> AgentRunResult[Any]:
        """``Agent.run_sync``, likewise."""
        return self.agent.run_sync(prompt, conversation_id=conversation_id, **options)

    def run_stream(
        self, prompt: Any = None, *, conversation_id: str | None = None, **options: Any
    ) -> AbstractAsyncContextManager[Any]:
        """``Agent.run_stream``, likewise."""
        return self.agent.run_stream(prompt, conversation_id=conversation_id, **options)
