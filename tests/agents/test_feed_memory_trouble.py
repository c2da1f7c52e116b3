"""``feed_memory`` with memories and stores that fail, beside other memories, and with wrong options."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from firefly_memory import ConfigurationError, ConflictError, DatabaseStoreError, InMemoryStore, MemoryManager
from firefly_memory.agents import FireflyAgent, Memory, feed_memory
from firefly_memory.feeds import (
    BaseMessageStore,
    InMemoryMemory,
    InMemoryMessageStore,
    MessageStoreMemory,
    WorkerHistoryFilter,
    create_user_message,
)
from tests.support.feed_agents import (
    OneMessage,
    looking,
    said,
    told,
)
from tests.support.scripted_model import Scripted

# Trouble


async def test_a_memory_that_cannot_be_written_to_is_only_read(caplog: pytest.LogCaptureFixture) -> None:
    class ReadOnly(BaseMessageStore):
        def get_conversation_messages(self, location: str, limit: int | None = None) -> Any:
            return [create_user_message("Hello")]

        def get_agent_messages(self, location: str, agent_key: str, limit: int | None = None) -> Any:
            return []

        def get_global_messages(self, location: str, limit: int | None = None) -> Any:
            return []

        def get_team_messages(self, location: str, agent_keys: Any, limit: int | None = None) -> Any:
            return []

    memory = MessageStoreMemory(ReadOnly(), "job", "ann")
    scripted = Scripted(RuntimeError("down"), "fine")
    with pytest.raises(RuntimeError):
        await looking(scripted, memory).run("one")
    assert (await looking(scripted, memory).run("two")).output == "fine"
    assert [text for _, text in told(scripted.asked[-1])] == ["Hello", "two"]
    assert caplog.messages == []


async def test_a_memory_is_not_read_if_a_history_is_given() -> None:
    memory = OneMessage(DatabaseStoreError("read", "gone"), reading=True)
    given: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("given")]), ModelResponse(parts=[TextPart("yes")])]
    assert (await looking(Scripted("fine"), memory).run("one", message_history=given)).output == "fine"


async def test_adding_goes_on_to_its_end_if_the_run_is_cancelled_meanwhile() -> None:
    adding = asyncio.Event()

    class Slow(OneMessage):
        async def add(self, message: Any) -> None:
            adding.set()
            await asyncio.sleep(0)
            await super().add(message)

    memory = Slow()
    run = asyncio.ensure_future(looking(Scripted({"look": {}}, "done"), memory).run("one"))
    await adding.wait()
    assert memory.messages == []
    run.cancel()
    await asyncio.wait([run])
    assert run.cancelled()
    assert [each["type"] for each in memory.messages] == ["user_message", "action", "observation", "assistant_message"]


async def test_a_run_that_fails_beside_another_adds_its_own_messages() -> None:
    first, second = asyncio.Event(), asyncio.Event()

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if "second" in str(messages):
            return ModelResponse(parts=[TextPart("done")])
        if isinstance(messages[-1].parts[0], UserPromptPart):
            return ModelResponse(parts=[ToolCallPart("look", {})])
        first.set()
        await second.wait()
        raise RuntimeError("down")

    memory = InMemoryMemory("ann")
    agent: Agent[None, str] = Agent(FunctionModel(answer), capabilities=[feed_memory(memory)])

    @agent.tool_plain
    def look() -> str:
        return "seen"

    failing = asyncio.ensure_future(agent.run("first"))
    await first.wait()
    await agent.run("second")
    second.set()
    with pytest.raises(RuntimeError, match="down"):
        await failing
    assert said(await memory.get_history()) == [
        ("user_message", "second"),
        ("assistant_message", "done"),
        ("user_message", "first"),
        ("action", "look"),
        ("observation", "seen"),
    ]


async def test_a_memory_of_ones_own_gets_the_messages_one_after_the_other() -> None:
    memory = OneMessage()
    scripted = Scripted({"look": {}}, "done", "fine")
    agent = looking(scripted, memory)
    await agent.run("one")
    assert [each["type"] for each in memory.messages] == ["user_message", "action", "observation", "assistant_message"]
    assert all("agent_key" not in each for each in memory.messages)
    await agent.run("two")
    assert [kind for kind, _ in told(scripted.asked[-1])][1:3] == ["tool-call", "tool-return"]


@pytest.mark.parametrize("steps", [("fine",), (RuntimeError("down"),)])
async def test_a_run_keeps_its_outcome_if_its_messages_cannot_be_added(
    steps: tuple[Any, ...], caplog: pytest.LogCaptureFixture
) -> None:
    agent = looking(Scripted(*steps), OneMessage(DatabaseStoreError("add", "the disk is full")))
    with caplog.at_level(logging.ERROR, "firefly_memory"):
        if steps == ("fine",):
            assert (await agent.run("one")).output == "fine"
        else:
            with pytest.raises(RuntimeError, match="down"):
                await agent.run("one")
    assert "not added to" in caplog.text
    assert "the disk is full" in caplog.text


async def test_a_conflict_is_raised_with_the_result() -> None:
    store = InMemoryMessageStore()
    memory = MessageStoreMemory(store, "job", "ann", owner="eve")

    async def answer(*_: object) -> ModelResponse:
        await store.async_append("job", create_user_message("mine"), owner="bob")
        return ModelResponse(parts=[TextPart("fine")])

    agent = Agent(FunctionModel(answer), capabilities=[feed_memory(memory)])
    with pytest.raises(ConflictError, match="another owner") as caught:
        await agent.run("one")
    assert caught.value.result.output == "fine"
    assert len(await store.async_get_items("job")) == 1


async def test_what_belongs_to_another_person_reaches_no_model() -> None:
    store, scripted = InMemoryMessageStore(), Scripted("fine")
    await store.async_append("job", create_user_message("a secret"), owner="bob")
    with pytest.raises(ConflictError, match="another owner"):
        await looking(scripted, MessageStoreMemory(store, "job", "ann", owner="eve")).run("one")
    assert scripted.asked == []


async def test_a_run_does_not_begin_if_the_history_cannot_be_read() -> None:
    scripted = Scripted()
    memory = OneMessage(DatabaseStoreError("read", "gone"), reading=True)
    with pytest.raises(DatabaseStoreError, match="gone"):
        await looking(scripted, memory).run("one")
    assert scripted.asked == []


# Options


async def test_an_agent_has_one_feed_memory() -> None:
    one, other = feed_memory(InMemoryMemory("one")), feed_memory(InMemoryMemory("other"))
    with pytest.raises(ConfigurationError, match="only one feed_memory capability; got 2"):
        Agent(Scripted().model, capabilities=[one, other])


async def test_that_of_a_run_replaces_the_agents_own() -> None:
    own, other = InMemoryMemory("own"), InMemoryMemory("other")
    await looking(Scripted("fine"), own).run("one", capabilities=[feed_memory(other)])
    assert await own.get_history() == []
    assert len(await other.get_history()) == 2


@pytest.mark.parametrize("first", [True, False])
async def test_an_agent_has_memory_or_feed_memory(first: bool) -> None:
    manager, memory, scripted = MemoryManager(store=InMemoryStore()), InMemoryMemory("ann"), Scripted()
    both = [Memory(manager), feed_memory(memory)]
    agent: Agent[None, str] = Agent(scripted.model, capabilities=both if first else both[::-1])
    with pytest.raises(ConfigurationError, match="Memory or feed_memory, and not both"):
        await agent.run("one", conversation_id="c")
    assert scripted.asked == []
    assert await memory.get_history() == []
    assert manager.conversation.get_turns("c") == []


async def test_a_firefly_agent_takes_it_as_a_capability() -> None:
    memory = InMemoryMemory("ann")
    agent = FireflyAgent(name="ann", model=Scripted("fine").model, capabilities=[feed_memory(memory)])
    assert agent.memory is None
    await agent.run("one")
    assert len(await memory.get_history()) == 2


@pytest.mark.parametrize(
    ("memory", "options", "message"),
    [
        (MemoryManager(store=InMemoryStore()), {}, r"not MemoryManager.*take Memory\(manager\)"),
        (None, {}, "not NoneType"),
        (InMemoryMemory(), {"role": "manager"}, "role must be"),
        (InMemoryMemory(), {"filter": "worker"}, "filter must be an object with a method filter_for_prompt"),
        (InMemoryMemory(), {"filter": WorkerHistoryFilter}, r"such as WorkerHistoryFilter\(\)"),
        (InMemoryMemory(), {"context": "job"}, "context must be a mapping or a function"),
    ],
)
def test_wrong_options_are_refused(memory: Any, options: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        feed_memory(memory, **options)
