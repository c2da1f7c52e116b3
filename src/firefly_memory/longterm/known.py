"""What is known when somebody speaks with an agent."""

from __future__ import annotations

from typing import NamedTuple

from firefly_memory.longterm.people_flows import FACTS_OF_CONTEXT
from firefly_memory.longterm.rows import Filters
from firefly_memory.longterm.service import MemoryService
from firefly_memory.longterm.types import MemoryFact

_LEAST = 0.5
_NOT_DOUBTFUL = Filters(min_confidence=_LEAST)


class Known(NamedTuple):
    """The facts of the largest confidence, of equal ones the newest first; none twice with one key."""

    name: str | None
    """The display name of the person."""
    own: list[MemoryFact]
    """Those of the person."""
    others: list[MemoryFact]
    """The agent's and the global ones. A fact of the person with the same key hides them, one of the agent a global
    one."""
    is_all: bool
    """Whether there are no more of them."""


async def known(service: MemoryService, user: str | None, agent_id: str | None) -> Known:
    """What is known for an agent that speaks with ``user``, who may be nobody: up to 100 facts of the person and 100
    others, but none whose confidence is below 0.5."""
    facts, people = service._suspending_facts, service._suspending_people  # noqa: SLF001 - a part of the service
    name, own = None, None
    if user is not None:
        name, own = await people.known(user, FACTS_OF_CONTEXT, None)
    others = await facts.listed({"agent_id": agent_id}, FACTS_OF_CONTEXT, None, _NOT_DOUBTFUL)
    hidden = {fact.key for fact in own or ()}
    of_agent = {fact.key for fact in others if fact.scope == "agent"}
    return Known(
        name,
        [each for each in own or () if each.confidence >= _LEAST],
        [each for each in others if each.key not in hidden and (each.scope == "agent" or each.key not in of_agent)],
        is_all=others.next is None and (own is None or own.next is None),
    )
