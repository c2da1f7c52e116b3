"""The tools of long-term memory for agents of pydantic-ai, made for the person of each run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.toolsets import AbstractToolset, DynamicToolset

from firefly_memory.errors import ConfigurationError
from firefly_memory.identifiers import stored_name
from firefly_memory.longterm.places import EVERY_AGENT
from firefly_memory.longterm.service import MemoryService
from firefly_memory.longterm.tools import (
    MemoryType,
    WriteScope,
    agent_id_of,
    async_memory_read,
    async_memory_write,
    check_write_scope,
    checked_service,
)
from firefly_memory.longterm.types import USUAL_TYPE
from firefly_memory.reprs import shown

User: TypeAlias = str | Callable[[RunContext[Any]], str | None]


def long_term_tools(
    service: MemoryService,
    *,
    user: User | None,
    agent: str = EVERY_AGENT,
    write_scope: WriteScope = "user",
    memory_type: MemoryType = "facts",
    limit: int = 10,
    min_confidence: float = 0.5,
    fact_type: str = USUAL_TYPE,
    overwrite: bool = True,
) -> AbstractToolset[Any]:
    """``Agent(model, toolsets=[long_term_tools(service, user=lambda ctx: ctx.deps.user_id)])``: the tools ``recall``
    and ``remember`` of :func:`~firefly_memory.longterm.memory_read` and
    :func:`~firefly_memory.longterm.memory_write`, for the person of each run.

    ``user`` is the person, or a function of the run's context that returns it; ``None`` is nobody. A run with nobody
    has no ``remember`` if this writes to the scope ``"user"``. The other arguments are those of the two functions.
    """
    check_long_term_options("long_term_tools", service, user, agent, write_scope)
    reading: dict[str, Any] = {"memory_type": memory_type, "limit": limit, "min_confidence": min_confidence}
    writing: dict[str, Any] = {"fact_type": fact_type, "overwrite": overwrite}

    def tools(person: str | None) -> list[Any]:
        read = async_memory_read(service, agent, person, **reading)
        if write_scope == "user" and person is None:
            return [read]
        return [read, async_memory_write(service, agent, person, **writing, scope=write_scope)]

    tools("anybody")  # says what is wrong with the arguments
    return DynamicToolset(lambda ctx: FunctionToolset(tools(user_of_run(user, ctx))), per_run_step=False)


def check_long_term_options(needing: str, service: Any, user: Any, agent: Any, write_scope: Any) -> None:
    """``ConfigurationError`` or ``InvalidEntryError`` for a wrong argument."""
    checked_service(needing, service)
    agent_id_of(agent)
    check_write_scope("write_scope", write_scope, agent)
    if user is not None and not callable(user):
        stored_name("user", user)


def user_of_run(user: User | None, ctx: RunContext[Any]) -> str | None:
    """The person of a run; ``None`` is nobody."""
    found = user(ctx) if callable(user) else user
    if found is None:
        return None
    if not isinstance(found, str) or not found:  # an empty text is more likely a mistake than nobody
        raise ConfigurationError(f"user returned {shown(found)}: it must return the canonical id of a person, or None")
    stored_name("user", found)
    return found
