"""Runs with the prompt in ``message_history``, as pydantic-ai's user interface adapters send it in every request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolReturnPart, UserPromptPart
from pydantic_ai.ui.ag_ui import AGUIAdapter
from pydantic_ai.ui.vercel_ai import VercelAIAdapter

from firefly_memory import MemoryManager
from firefly_memory.agents import Memory
from tests.support.scripted_model import Scripted, stored


@pytest.fixture
def manager() -> MemoryManager:
    return MemoryManager()


def an_agent(manager: MemoryManager, *steps: Any) -> Agent[None, Any]:
    agent: Agent[None, Any] = Agent(
        Scripted(*steps).model, output_type=[str, DeferredToolRequests], capabilities=[Memory(manager)]
    )

    @agent.tool_plain
    def look() -> str:
        return "seen"

    @agent.tool_plain(requires_approval=True)
    def pay() -> str:
        return "paid"

    return agent


def user(*content: Any) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(each) for each in content])


def assistant(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)])


def kinds(manager: MemoryManager) -> list[list[str]]:
    """The parts of each turn."""
    turns = manager.conversation.get_turns("c")
    return [[part.part_kind for message in turn.raw_messages for part in message.parts] for turn in turns]


async def run(agent: Agent[None, Any], way: str, history: Sequence[ModelMessage]) -> None:
    options: Any = {"message_history": history, "conversation_id": "c"}
    if way == "run":
        await agent.run(**options)
    elif way == "run_stream":
        async with agent.run_stream(**options) as stream:
            await stream.get_output()
    elif way == "run_stream_events":
        async with agent.run_stream_events(**options) as events:
            assert [event async for event in events]
    else:
        async with agent.iter(**options) as nodes:
            assert [node async for node in nodes]


@pytest.mark.parametrize("way", ["run", "run_stream", "run_stream_events", "iter"])
async def test_the_prompt_of_a_history_is_the_prompt_of_the_turn(way: str, manager: MemoryManager) -> None:
    agent = an_agent(manager, "yes", "because")
    await run(agent, way, [user("is it?")])
    await run(agent, way, [user("is it?"), assistant("yes"), user("why?")])
    assert stored(manager) == [("is it?", "yes"), ("why?", "because")]
    assert kinds(manager) == [["user-prompt", "text"]] * 2
    data = manager.conversation.export_conversation("c")
    assert [turn["user_prompt"] for turn in data["turns"]] == ["is it?", "why?"]


def test_run_sync_stores_the_prompt_of_a_history(manager: MemoryManager) -> None:
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())  # pydantic-ai leaves one of its own open
        an_agent(manager, "yes").run_sync(message_history=[user("is it?")], conversation_id="c")
    assert stored(manager) == [("is it?", "yes")]


async def test_all_prompts_that_wait_for_an_answer_are_stored_with_their_files(manager: MemoryManager) -> None:
    picture = BinaryContent(b"\x89PNG", media_type="image/png")
    history: list[ModelMessage] = [user("one"), assistant("a"), user("two"), user(["three", picture])]
    await an_agent(manager, "fine").run(message_history=history, conversation_id="c")
    assert stored(manager) == [("two\nthree", "fine")]
    (turn,) = manager.conversation.get_turns("c")
    assert [part.content for part in turn.raw_messages[0].parts] == ["two", ["three", picture]]


async def test_a_prompt_beside_a_history_is_the_prompt_of_the_turn(manager: MemoryManager) -> None:
    history: list[ModelMessage] = [user("one"), assistant("a")]
    await an_agent(manager, "fine").run("two", message_history=history, conversation_id="c")
    assert stored(manager) == [("two", "fine")]


async def test_an_unanswered_prompt_is_not_stored_twice(manager: MemoryManager) -> None:
    agent = an_agent(manager, RuntimeError("503"), RuntimeError("503"), "yes", "because")
    for history in ([user("is it?")], [user("is it?")]):
        with pytest.raises(RuntimeError, match="503"):
            await agent.run(message_history=history, conversation_id="c")
    await agent.run(message_history=[user("is it?", "tell me")], conversation_id="c")
    assert stored(manager) == [("is it?", ""), ("tell me", "yes")]
    assert kinds(manager) == [["user-prompt"], ["user-prompt", "text"]]
    scripted = Scripted("fine")
    await Agent(scripted.model, capabilities=[Memory(manager)]).run("and?", conversation_id="c")
    assert scripted.texts == [["is it?", "tell me", "yes", "and?"]]


async def test_a_repeated_prompt_is_stored_a_second_time(manager: MemoryManager) -> None:
    agent = an_agent(manager, RuntimeError("503"), "fine", "fine too")
    with pytest.raises(RuntimeError, match="503"):
        await agent.run(message_history=[user("go on")], conversation_id="c")
    await agent.run(message_history=[user("go on"), user("go on")], conversation_id="c")
    await agent.run(
        message_history=[user("go on"), user("go on"), assistant("fine"), user("go on")], conversation_id="c"
    )
    assert stored(manager) == [("go on", ""), ("go on", "fine"), ("go on", "fine too")]


async def test_turns_of_other_message_formats_are_not_taken_for_unanswered_prompts(manager: MemoryManager) -> None:
    agent = an_agent(manager, RuntimeError("503"), "yes", "yes again", "and again")
    with pytest.raises(RuntimeError, match="503"):
        await agent.run(message_history=[user("is it?")], conversation_id="c")
    await manager.async_add_turn("c", "texts only", "answered")
    await agent.run(message_history=[user("is it?")], conversation_id="c")
    await manager.async_add_turn("c", "is it?", "", [{"role": "user", "content": "is it?"}])
    await agent.run(message_history=[user("is it?")], conversation_id="c")
    assert [prompt for prompt, _ in stored(manager)] == ["is it?", "texts only", "is it?", "is it?", "is it?"]


async def test_a_prompt_is_stored_although_the_model_was_not_called(manager: MemoryManager) -> None:
    agent = an_agent(manager)

    @agent.instructions
    def broken() -> str:
        raise ArithmeticError("no instructions today")

    with pytest.raises(ArithmeticError):
        await agent.run(message_history=[user("is it?")], conversation_id="c")
    assert stored(manager) == [("is it?", "")]


async def test_a_result_that_an_earlier_run_stored_is_not_stored_twice(manager: MemoryManager) -> None:
    agent = an_agent(manager, {"look": {}}, RuntimeError("503"), "it is red")
    history: list[ModelMessage] = [user("look")]
    with pytest.raises(RuntimeError, match="503"):
        await agent.run(message_history=history, conversation_id="c")
    (turn,) = manager.conversation.get_turns("c")
    await agent.run(message_history=list(turn.raw_messages), conversation_id="c")
    assert stored(manager) == [("look", ""), ("", "it is red")]
    assert kinds(manager) == [["user-prompt", "tool-call", "tool-return"], ["text"]]


async def test_a_history_that_ends_with_a_result_of_the_client_has_no_prompt(manager: MemoryManager) -> None:
    agent = an_agent(manager, {"pay": {}}, "it is paid")
    paused = await agent.run(message_history=[user("pay")], conversation_id="c")
    (call,) = paused.output.approvals
    answer = ModelRequest(parts=[ToolReturnPart("pay", "done", tool_call_id=call.tool_call_id)])
    await agent.run(message_history=[*paused.all_messages(), answer], conversation_id="c")
    assert stored(manager) == [("pay", ""), ("", "it is paid")]
    assert kinds(manager) == [["user-prompt", "tool-call"], ["tool-return", "text"]]


async def test_deferred_results_beside_a_history_are_stored_once(manager: MemoryManager) -> None:
    agent = an_agent(manager, {"pay": {}}, "it is paid")
    paused = await agent.run(message_history=[user("pay")], conversation_id="c")
    results = DeferredToolResults(approvals={call.tool_call_id: True for call in paused.output.approvals})
    await agent.run(message_history=paused.all_messages(), deferred_tool_results=results, conversation_id="c")
    assert stored(manager) == [("pay", ""), ("", "it is paid")]
    assert kinds(manager) == [["user-prompt", "tool-call"], ["tool-return", "text"]]


# pydantic-ai's adapters


def vercel(agent: Agent[None, Any], texts: Sequence[str]) -> Any:
    messages = [
        {"id": str(number), "role": role, "parts": [{"type": "text", "text": text}]}
        for number, (role, text) in enumerate(zip(["user", "assistant"] * len(texts), texts, strict=False))
    ]
    body = {"trigger": "submit-message", "id": "c", "messages": messages}
    return VercelAIAdapter(agent=agent, run_input=VercelAIAdapter.build_run_input(json.dumps(body).encode()))


def ag_ui(agent: Agent[None, Any], texts: Sequence[str]) -> Any:
    messages = [
        {"id": str(number), "role": role, "content": text}
        for number, (role, text) in enumerate(zip(["user", "assistant"] * len(texts), texts, strict=False))
    ]
    body = {"threadId": "c", "runId": "r", "state": {}, "messages": messages, "tools": [], "context": []}
    run_input = AGUIAdapter.build_run_input(json.dumps({**body, "forwardedProps": {}}).encode())
    return AGUIAdapter(agent=agent, run_input=run_input)


@pytest.mark.parametrize("adapter", [vercel, ag_ui])
async def test_a_chat_through_an_adapter_is_stored_once(adapter: Any, manager: MemoryManager) -> None:
    agent = an_agent(manager, "yes", RuntimeError("503"), {"look": {}}, "because I saw it")
    for texts in (["is it?"], ["is it?", "yes", "why?"], ["is it?", "yes", "why?"]):
        assert [event async for event in adapter(agent, texts).run_stream()]
    assert stored(manager) == [("is it?", "yes"), ("why?", ""), ("", "because I saw it")]
    parts = [["user-prompt", "text"], ["user-prompt"], ["tool-call", "tool-return", "text"]]
    assert kinds(manager) == parts
