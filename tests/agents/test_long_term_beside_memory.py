"""``LongTermMemory`` beside ``Memory`` in one agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, PrefixTools

from firefly_memory import ConfigurationError, MemoryManager
from firefly_memory.agents import FireflyAgent, LongTermMemory, Memory
from firefly_memory.longterm import MemoryService
from tests.support.scripted_model import TOLD, Scripted

ANN = "chat:ann"


@pytest.fixture
def service() -> MemoryService:
    return MemoryService(embedder=None)


async def test_the_stored_turns_of_memory_have_no_facts_of_long_term_memory(service: MemoryService) -> None:
    service.set_fact("color", "blue", scope="user", user_id=ANN)
    own = LongTermMemory(service, user=ANN)
    for capability in (own, PrefixTools(wrapped=own, prefix="long_term")):
        manager, scripted = MemoryManager(), Scripted("hello")
        agent = Agent(scripted.model, instructions="Be brief.", capabilities=[Memory(manager), capability])
        result = await agent.run("go", conversation_id="c")
        assert "- color: blue" in scripted.instructions[0]
        (turn,) = manager.conversation.get_turns("c")
        assert [message.instructions for message in turn.raw_messages if message.kind == "request"] == [None]
        assert "- color: blue" in str(result.all_messages()[0]), "the messages of the run itself are the caller's"
    manager = MemoryManager()
    empty = LongTermMemory(service, user=None)
    await Agent(Scripted("x").model, instructions="Be brief.", capabilities=[Memory(manager), empty]).run(
        "go", conversation_id="c"
    )
    (turn,) = manager.conversation.get_turns("c")
    assert turn.raw_messages[0].instructions == "Be brief."


async def test_both_memories_work_in_one_agent(manager: MemoryManager) -> None:
    service = MemoryService(manager.store, space=uuid4().hex, embedder=None)
    await manager.async_set_fact("task", "paint")
    await service.async_set_fact("color", "blue", scope="user", user_id=ANN)
    scripted = Scripted({"remember": {"key": "size", "value": 3}}, "noted", "again")
    agent = FireflyAgent(
        name="a", model=scripted.model, memory=manager, capabilities=[LongTermMemory(service, user=ANN)]
    )
    await agent.run("one", conversation_id="c")
    await agent.run("two", conversation_id="c")
    assert scripted.instructions[2].startswith(TOLD + "- task: paint")
    assert "- color: blue" in scripted.instructions[2]
    assert "- size: 3" in scripted.instructions[2]
    assert scripted.texts[2][0] == "one"
    assert manager.get_fact("size") is None


ORDERS = pytest.mark.parametrize("memory_first", [True, False])


@ORDERS
async def test_two_pairs_of_tools_with_the_same_names_are_refused_before_anything_is_stored(
    memory_first: bool, service: MemoryService
) -> None:
    manager, scripted = MemoryManager(), Scripted()
    pair: Sequence[AbstractCapability[Any]] = [Memory(manager, tools=True), LongTermMemory(service, user=ANN)]
    first, second = pair if memory_first else reversed(pair)
    runs: list[tuple[Any, dict[str, Any]]] = [
        (Agent(scripted.model, capabilities=[first, second]), {}),
        (Agent(scripted.model, capabilities=[first]), {"capabilities": [second]}),
        (Agent(scripted.model), {"capabilities": [first, second]}),
    ]
    for agent, options in runs:
        with pytest.raises(ConfigurationError, match=r"take Memory\(tools=False\), or LongTermMemory\(tools=False\)"):
            await agent.run("go", conversation_id="c", **options)
    assert scripted.asked == []
    assert not manager.conversation.list_conversations().conversations


@ORDERS
@pytest.mark.parametrize("of_memory", [True, False])
async def test_one_pair_of_tools_is_fine(of_memory: bool, memory_first: bool, service: MemoryService) -> None:
    pair = [Memory(MemoryManager(), tools=of_memory), LongTermMemory(service, user=ANN, tools=not of_memory)]
    scripted = Scripted({"remember": {"key": "color", "value": "blue"}}, "done")
    await Agent(scripted.model, capabilities=pair if memory_first else pair[::-1]).run("go", conversation_id="c")
    expected = "remembered" if of_memory else "Remembered: color = blue (created)"
    assert scripted.texts[-1][-1] == expected
