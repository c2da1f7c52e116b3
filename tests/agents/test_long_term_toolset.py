"""``long_term_tools``: the tools of long-term memory without the instructions."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent

from firefly_memory import ConfigurationError, InvalidEntryError
from firefly_memory.agents import long_term_tools
from firefly_memory.longterm import MemoryService, async_memory_read, async_memory_write, memory_read, memory_write
from tests.support.scripted_model import Scripted

ANN, BOB = "chat:ann", "chat:bob"


async def answers(toolset: Any, *steps: Any, deps: Any = None) -> list[str]:
    """What the tools answer."""
    scripted = Scripted(*steps, "done")
    await Agent(scripted.model, deps_type=str, toolsets=[toolset]).run("go", deps=deps)
    assert set(scripted.instructions) == {""}
    return scripted.texts[-1][1:]


async def test_the_tools_are_those_of_the_person_of_the_run() -> None:
    service = MemoryService(embedder=None)
    toolset = long_term_tools(service, user=lambda ctx: ctx.deps, fact_type="correction")
    writes = {"remember": {"key": "color", "value": "blue"}}
    assert await answers(toolset, writes, deps=ANN) == ["Remembered: color = blue (created)"]
    assert await answers(toolset, {"recall": {"key": "color"}}, deps=ANN) == ["color = blue"]
    assert await answers(toolset, {"recall": {"key": "color"}}, deps=BOB) == ["No memory found for key: color"]
    assert await answers(toolset, {"recall": {}}) == ["Memory is empty — no facts stored."]
    (fact,) = service.get_user_facts(ANN)
    assert fact.fact_type == "correction"


async def test_the_settings_are_those_of_the_two_functions() -> None:
    service = MemoryService(embedder=None)
    for number in range(3):
        service.set_fact(f"k{number}", "x", confidence=0.3 * (number + 1))
    settings: dict[str, Any] = {"user": ANN, "write_scope": "global", "overwrite": False, "limit": 1}
    toolset = long_term_tools(service, **settings, min_confidence=0.7)
    writes = {"remember": {"key": "k1", "value": "y"}}
    assert await answers(toolset, writes) == ["Remembered: k1 = x (skipped)"]
    assert await answers(toolset, {"recall": {"query": "k1"}}) == ["No memories found for query: k1"]
    (found,) = await answers(toolset, {"recall": {"query": "k"}})
    assert found.count('"key"') == 1


@pytest.mark.parametrize("makers", [(memory_read, memory_write), (async_memory_read, async_memory_write)])
async def test_the_plain_functions_are_tools_of_an_agent(makers: Any) -> None:
    service = MemoryService(embedder=None)
    scripted = Scripted({"remember": {"key": "color", "value": {"hex": [1, 2]}}}, {"recall": {"key": "color"}}, "done")
    agent = Agent(scripted.model, tools=[maker(service) for maker in makers])
    await agent.run("go")
    assert scripted.texts[-1][1:] == ['Remembered: color = {"hex": [1, 2]} (created)', 'color = {"hex": [1, 2]}']


def test_wrong_arguments_are_errors_when_it_is_made() -> None:
    service = MemoryService(embedder=None)
    wrong: Any
    for wrong in ({"limit": 0}, {"memory_type": "x"}, {"overwrite": 1}, {"write_scope": "session"}):
        with pytest.raises(ConfigurationError):
            long_term_tools(service, user=None, **wrong)
    for wrong in ({"min_confidence": 2}, {"fact_type": ""}, {"user": ""}, {"agent": ""}):
        with pytest.raises(InvalidEntryError):
            long_term_tools(service, **{"user": None, **wrong})
