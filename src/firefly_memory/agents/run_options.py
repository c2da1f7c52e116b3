"""Runs an agent with a memory for one run only."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from pydantic_ai.capabilities import AbstractCapability, DynamicCapability

from firefly_memory.agents.capability import Memory
from firefly_memory.agents.firefly_agent import FireflyAgent, capabilities_of, memory_of
from firefly_memory.agents.routing import AnyAgent
from firefly_memory.concurrency.cancellation import finished
from firefly_memory.errors import FireflyMemoryError
from firefly_memory.manager import MemoryManager

logger = logging.getLogger("firefly_memory")


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
