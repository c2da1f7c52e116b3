"""``Agent(model, capabilities=[Memory(manager)])``: the sent messages, the stored turns, and streamed runs."""

from __future__ import annotations

import asyncio
from copy import copy
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    BinaryContent,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)

from firefly_memory import ConfigurationError, MemoryManager, connect
from firefly_memory.agents import FireflyAgent, Memory
from tests.support.scripted_model import TOLD, Scripted, stored


async def test_a_run_sends_the_stored_turns_and_stores_its_own(manager: MemoryManager) -> None:
    scripted = Scripted()
    agent = Agent(scripted.model, capabilities=[Memory(manager)])
    first = await agent.run("one", conversation_id="c")
    second = await agent.run("two", conversation_id="c")
    await agent.run("elsewhere", conversation_id="d")
    assert (first.output, second.output) == ("answer 1", "answer 2")
    assert scripted.texts == [["one"], ["one", "answer 1", "two"], ["elsewhere"]]
    assert stored(manager) == [("one", "answer 1"), ("two", "answer 2")]
    turns = manager.conversation.get_turns("c")
    assert [turn.raw_messages for turn in turns] == [first.new_messages(), second.new_messages()]
    assert second.conversation_id == "c"


async def test_a_run_without_a_conversation_id_gets_a_new_conversation(manager: MemoryManager) -> None:
    agent = Agent(Scripted().model, capabilities=[Memory(manager)])
    result = await agent.run("one")
    assert stored(manager, result.conversation_id) == [("one", "answer 1")]


async def test_the_window_fits_the_budget_and_the_summary_is_in_the_instructions() -> None:
    manager = MemoryManager(
        summarize_threshold=120,
        summarizer=lambda turns: f"they said {turns[-1].user_prompt[:8]}",
        max_conversation_tokens=500,
    )
    scripted = Scripted()
    agent = Agent(scripted.model, instructions="Be brief.", capabilities=[Memory(manager)])
    for number in range(6):
        await agent.run(f"prompt {number} " + "word " * 40, conversation_id="c")
    assert "Be brief." in scripted.instructions[-1]
    assert "Summary of the conversation so far:\n  they said prompt" in scripted.instructions[-1]
    assert not any("they said" in text for text in scripted.texts[-1]), "once, not twice"
    assert len(scripted.texts[-1]) < 9
    tight = Agent(scripted.model, capabilities=[Memory(manager, max_tokens=1)])
    await tight.run("short", conversation_id="c")
    assert scripted.texts[-1] == ["short"]


async def test_working_memory_is_in_the_instructions_unless_switched_off(manager: MemoryManager) -> None:
    manager.set_fact("language", "Portuguese")
    scripted = Scripted()
    await Agent(scripted.model, capabilities=[Memory(manager)]).run("one")
    await Agent(scripted.model, capabilities=[Memory(manager, context=False)]).run("two")
    assert scripted.instructions == [f"{TOLD}- language: Portuguese", ""]


async def test_the_model_can_remember_and_recall_if_allowed(manager: MemoryManager) -> None:
    scripted = Scripted(
        {"remember": {"key": "city", "value": "Lyon"}}, "noted", {"recall": {"key": "city"}}, "it is Lyon"
    )
    agent = Agent(scripted.model, capabilities=[Memory(manager, tools=True)])
    await agent.run("I live in Lyon", conversation_id="c")
    assert manager.get_fact("city") is None, "it is what one conversation knows"
    assert manager.fork(conversation_id="c").get_fact("city") == "Lyon"
    assert scripted.instructions == ["", f"{TOLD}- city: Lyon"], "at once"
    result = await agent.run("where do I live?", conversation_id="c")
    assert result.output == "it is Lyon"
    assert scripted.texts[-1][-1] == "Lyon"


async def test_an_agents_system_prompt_is_not_repeated(manager: MemoryManager) -> None:
    scripted = Scripted()
    agent = Agent(scripted.model, system_prompt="You are terse.", capabilities=[Memory(manager)])
    for prompt in ("one", "two", "three"):
        await agent.run(prompt, conversation_id="c")
    said = [part for message in scripted.asked[-1] for part in message.parts if isinstance(part, SystemPromptPart)]
    assert len(said) == 1
    assert isinstance(scripted.asked[-1][0].parts[0], SystemPromptPart), "in front"


async def test_a_given_history_replaces_the_stored_one(manager: MemoryManager) -> None:
    scripted = Scripted()
    agent = Agent(scripted.model, capabilities=[Memory(manager)])
    await agent.run("one", conversation_id="c")
    given: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("given")]), ModelResponse(parts=[TextPart("yes")])]
    result = await agent.run("two", conversation_id="c", message_history=given)
    assert scripted.texts[-1] == ["given", "yes", "two"]
    assert stored(manager) == [("one", "answer 1"), ("two", "answer 2")]
    assert manager.conversation.get_turns("c")[1].raw_messages == result.new_messages()


async def test_prompts_and_outputs_other_than_text_come_back_equal(manager: MemoryManager) -> None:
    scripted = Scripted({"final_result": {"response": {"number": 1}}})
    agent = Agent(scripted.model, output_type=dict[str, int], capabilities=[Memory(manager)])
    picture = BinaryContent(b"\x89PNG\x00\xff" * 10, media_type="image/png")
    result = await agent.run(["what is this?", picture], conversation_id="c")
    (turn,) = manager.conversation.get_turns("c")
    assert turn.user_prompt == "what is this?"
    assert turn.assistant_response == '{"number":1}'
    assert turn.raw_messages == result.new_messages()
    again = turn.raw_messages[0].parts[0].content[1]
    assert (again.data, again.media_type) == (picture.data, picture.media_type)


# Streams


async def test_a_streamed_run_is_stored(manager: MemoryManager) -> None:
    agent = Agent(Scripted("streamed").model, capabilities=[Memory(manager)])
    async with agent.run_stream("one", conversation_id="c") as stream:
        assert [text async for text in stream.stream_text(debounce_by=None)][-1] == "streamed"
    assert stored(manager) == [("one", "streamed")]


async def test_the_events_of_a_run_can_be_streamed(manager: MemoryManager) -> None:
    agent = Agent(Scripted("streamed").model, capabilities=[Memory(manager)])
    async with agent.run_stream_events("one", conversation_id="c") as events:
        assert [event async for event in events]
    assert stored(manager) == [("one", "streamed")]


async def test_a_stream_that_is_left_early_is_stored_up_to_there(manager: MemoryManager) -> None:
    scripted = Scripted("a long answer", "next")
    agent = Agent(scripted.model, capabilities=[Memory(manager)])
    async with agent.run_stream("one", conversation_id="c") as stream:
        async for _ in stream.stream_text(debounce_by=None):
            break
    ((prompt, answer),) = stored(manager)
    assert prompt == "one"
    assert answer
    assert "a long answer".startswith(answer)
    result = await agent.run("two", conversation_id="c")
    assert result.output == "next"


def test_invalid_options_are_refused(manager: MemoryManager) -> None:
    with pytest.raises(ConfigurationError, match="on_conflict"):
        Memory(manager, on_conflict="ignore")  # type: ignore[arg-type]


async def test_an_agent_spec_can_name_the_memory_capability(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Memory] = []

    @dataclass
    class Kept(Memory):
        def __post_init__(self) -> None:
            super().__post_init__()
            made.append(self)

        @classmethod
        def get_serialization_name(cls) -> str:
            return "Memory"

    url = f"sqlite:///{tmp_path}/memory.db"
    for arguments in ({"url": url, "tools": True}, {}):
        monkeypatch.setenv("FIREFLY_AGENTIC_MEMORY_URL", url)
        agent = Agent.from_spec(
            {"model": "test", "capabilities": [{"Memory": arguments}]}, custom_capability_types=[Kept]
        )
        await agent.run("one", conversation_id="c")
        await made[-1].manager.store.close()
    with connect(url) as store:
        assert len(MemoryManager(store=store).conversation.get_turns("c")) == 2
    assert Memory.get_serialization_name() == "Memory"


async def test_firefly_agent_wraps_an_agent_with_a_memory(manager: MemoryManager) -> None:
    scripted = Scripted()
    agent = FireflyAgent(name="assistant", model=scripted.model, memory=manager, instructions="Be brief.")
    conversation = manager.new_conversation()
    await agent.run("What is Python?", conversation_id=conversation)
    result = await agent.run("What about its type system?", conversation_id=conversation)
    assert result.output == "answer 2"
    assert scripted.texts[1] == ["What is Python?", "answer 1", "What about its type system?"]
    assert isinstance(agent.agent, Agent)
    assert agent.agent.name == "assistant"
    async with agent.run_stream("three", conversation_id=conversation) as stream:
        await stream.get_output()
    other = manager.fork(working_scope_id="other")
    await agent.run("four", conversation_id="d", capabilities=[agent.remembering(other)])
    assert agent.memory is manager
    async with agent.iter("five", conversation_id="d") as run:  # all that Agent has
        async for _ in run:
            pass
    assert [prompt for prompt, _ in stored(manager, "d")] == ["four", "five"]
    assert len(stored(manager, conversation)) == 3


def test_firefly_agent_has_a_blocking_run(manager: MemoryManager) -> None:
    agent = FireflyAgent(name="assistant", model=Scripted().model, memory=manager)
    loop = asyncio.new_event_loop()  # pydantic-ai would make one and leave it open
    asyncio.set_event_loop(loop)
    try:
        assert agent.run_sync("one", conversation_id="c").output == "answer 1"
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert stored(manager) == [("one", "answer 1")]


def test_remembering_keeps_the_options_of_the_memory(manager: MemoryManager) -> None:
    options: dict[str, Any] = {"tools": True, "max_tokens": 7, "on_conflict": "reject"}
    agent = FireflyAgent(name="a", model="test", memory=Memory(manager, **options))
    elsewhere = MemoryManager()
    assert agent.remembering(elsewhere) == Memory(elsewhere, **options)
    plain = FireflyAgent(name="a", model="test", memory_tools=True, on_conflict="reject")
    assert plain.remembering(elsewhere) == Memory(elsewhere, tools=True, on_conflict="reject")
    for twice in ({"memory_tools": True}, {"on_conflict": "reject"}):
        with pytest.raises(ConfigurationError, match="options of the Memory"):
            FireflyAgent(name="a", model="test", memory=Memory(manager), **twice)


async def test_a_firefly_agent_offers_the_decorators_of_its_agent(manager: MemoryManager) -> None:
    scripted = Scripted({"today": {}}, "Monday")
    assistant = FireflyAgent(name="assistant", model=scripted.model, memory=manager)

    @assistant.tool_plain
    def today() -> str:
        return "Monday"

    @assistant.instructions
    def brief() -> str:
        return "Be brief."

    assert (await assistant.run("which day?", conversation_id="c")).output == "Monday"
    assert scripted.instructions[0] == "Be brief."
    assert copy(assistant).name == "assistant"
    with pytest.raises(AttributeError, match="nothing"):
        assistant.nothing  # type: ignore[attr-defined]  # noqa: B018
