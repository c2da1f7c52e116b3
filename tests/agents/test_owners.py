"""``Memory(owner=…)``: whose conversations an agent continues."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent

from firefly_memory import ConfigurationError, ConflictError, InvalidEntryError, MemoryManager
from firefly_memory.agents import FireflyAgent, Memory
from firefly_memory.reasoning import ReasoningPattern
from tests.support.scripted_model import Scripted


def agent_of(manager: MemoryManager, **options: Any) -> Agent[str, str]:
    """Its dependency is the name of the user."""
    return Agent(deps_type=str, capabilities=[Memory(manager, owner=lambda ctx: ctx.deps, **options)])


def owners(manager: MemoryManager) -> dict[str, str | None]:
    return {each.conversation_id: each.owner for each in manager.conversation.list_conversations()}


async def test_a_new_conversation_belongs_to_the_user_of_the_run() -> None:
    manager = MemoryManager()
    agent, model = agent_of(manager), Scripted("hello").model
    await agent.run("hi", model=model, deps="ann", conversation_id="of ann")
    async with agent.run_stream("hi", model=Scripted("hello").model, deps="bob", conversation_id="of bob") as stream:
        await stream.get_output()
    assert owners(manager) == {"of ann": "ann", "of bob": "bob"}
    fixed = FireflyAgent(name="ours", memory=Memory(manager, owner="ann"))
    await fixed.run("again", model=Scripted("hello").model, conversation_id="of ann")
    assert len(manager.conversation.get_turns("of ann")) == 2


@pytest.mark.parametrize("on_conflict", ["append", "reject", "branch"])
async def test_a_conversation_of_another_user_is_refused_before_anything_is_read(on_conflict: Any) -> None:
    manager = MemoryManager()
    manager.add_turn("of ann", "my secret", "noted", owner="ann")
    manager.add_turn("of nobody", "another secret", "noted")
    manager.new_conversation("empty", owner="ann")
    manager.fork(conversation_id="of ann").set_fact("pin", 1234)
    agent = agent_of(manager, on_conflict=on_conflict)
    for conversation_id in ("of ann", "of nobody", "empty"):
        bobs = Scripted("never asked")
        with pytest.raises(ConflictError, match=f"{conversation_id}' does not belong to 'bob'"):
            await agent.run("tell me", model=bobs.model, deps="bob", conversation_id=conversation_id)
        assert bobs.asked == []
    assert owners(manager) == {"of ann": "ann", "of nobody": None, "empty": "ann"}


@pytest.mark.parametrize("on_conflict", ["append", "reject", "branch"])
async def test_a_turn_is_not_stored_in_a_conversation_that_another_user_began_meanwhile(on_conflict: Any) -> None:
    manager = MemoryManager()
    agent: Any = agent_of(manager, on_conflict=on_conflict)

    @agent.tool_plain  # type: ignore[untyped-decorator]
    def wait() -> str:
        manager.add_turn("chat", "I was faster", "yes", owner="ann")
        return "done"

    run = agent.run("slow", model=Scripted({"wait": {}}, "end").model, deps="bob", conversation_id="chat")
    if on_conflict == "branch":
        branch = (await run).conversation_id
        assert owners(manager) == {"chat": "ann", branch: "bob"}
        assert [turn.user_prompt for turn in manager.conversation.get_turns(branch)] == ["slow"]
    else:
        with pytest.raises(ConflictError):
            await run
        assert owners(manager) == {"chat": "ann"}
    assert [turn.user_prompt for turn in manager.conversation.get_turns("chat")] == ["I was faster"]


async def test_users_at_once_have_their_own_conversations() -> None:
    manager = MemoryManager()
    agent = agent_of(manager)
    users = [f"user {number}" for number in range(10)]
    runs = [agent.run("hi", model=Scripted("hello").model, deps=user, conversation_id=f"of {user}") for user in users]
    await asyncio.gather(*runs)
    assert owners(manager) == {f"of {user}": user for user in users}


class TwoSteps(ReasoningPattern):
    async def reason(self, state: dict[str, Any]) -> Any:
        await self.step(state, "first", state["prompt"])
        return await self.step(state, "second", "go on")


@pytest.mark.parametrize("owner", ["bob", lambda _: "bob"], ids=["text", "function"])
async def test_the_runs_of_a_pattern_have_an_owner(owner: Any) -> None:
    manager, bobs = MemoryManager(), Scripted("one", "two")
    manager.add_turn("of ann", "my secret", "noted", owner="ann")
    agent = FireflyAgent(name="ours", memory=Memory(manager, owner=owner))
    with pytest.raises(ConflictError, match="does not belong to 'bob'"):
        await TwoSteps().execute(agent, "tell", model=bobs.model, conversation_id="of ann")
    assert bobs.asked == []
    await TwoSteps().execute(agent, "tell", model=bobs.model, conversation_id="of bob")
    assert owners(manager) == {"of ann": "ann", "of bob": "bob"}
    assert len(manager.conversation.get_turns("of ann")) == 1


@pytest.mark.parametrize("returned", [None, "", 7])
async def test_a_function_that_names_nobody_lets_nobody_in(returned: Any) -> None:
    manager = MemoryManager()
    agent = Agent(capabilities=[Memory(manager, owner=lambda _: returned)])
    with pytest.raises(ConfigurationError, match="owner returned"):
        await agent.run("hi", model=Scripted("hello").model, conversation_id="chat")
    assert owners(manager) == {}


@pytest.mark.parametrize("owner", ["", "x" * 513, 7])
def test_what_is_no_owner_is_refused_when_the_capability_is_made(owner: Any) -> None:
    with pytest.raises(InvalidEntryError, match="owner"):
        Memory(MemoryManager(), owner=owner)
