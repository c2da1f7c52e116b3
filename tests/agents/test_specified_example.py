"""The complete example of the specification, with an agent of pydantic-ai in place of the other framework's."""

from __future__ import annotations

from pydantic_ai import Agent

from firefly_memory.agents import feed_memory
from tests.support.feed_agents import said
from tests.support.scripted_model import Scripted
from tests.support.specified_snippets import complete_example


def greet(name: str) -> str:
    return f"Hello, {name}!"


async def test_an_agent_works_with_a_message_store_of_the_user() -> None:
    memory = (await complete_example())["memory"]
    scripted = Scripted({"greet": {"name": "Alice"}}, "Alice is greeted.")
    agent = Agent(scripted.model, name="greeter", tools=[greet], capabilities=[feed_memory(memory)])
    result = await agent.run("Greet Alice")
    assert result.output == "Alice is greeted."
    assert said(await memory.get_history()) == [
        ("user_message", "Greet Alice"),
        ("assistant_message", "Alice is greeted."),
        ("action", "greet"),
        ("observation", "Hello, Alice!"),
    ]
