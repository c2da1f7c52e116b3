"""Stored turns and later requests describe a run truly: regression tests."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext, ToolReturn
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from firefly_memory import (
    ConfigurationError,
    MemoryManager,
    SQLiteStore,
    StaleConversationError,
)
from firefly_memory.agents import Memory
from firefly_memory.concurrency.cancellation import to_its_end
from firefly_memory.reasoning import ReActPattern
from tests.support.scripted_model import TOLD, Scripted, estimator_that_warns_once, stored


@pytest.fixture
def manager() -> MemoryManager:
    return MemoryManager()


def told(message: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": message}]


async def test_a_call_does_not_get_the_result_of_an_earlier_one_with_its_id(manager: MemoryManager) -> None:
    """Some models number the calls of each response anew."""
    responses: list[ModelResponse] = []

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        call = ToolCallPart("pay", {"amount": len(responses)}, tool_call_id="call_0")
        responses.append(ModelResponse(parts=[call if len(responses) < 2 else TextPart("done")]))
        return responses[-1]

    agent = Agent(FunctionModel(respond), capabilities=[Memory(manager)])

    @agent.tool_plain
    def pay(amount: int) -> str:
        if amount == 1:
            raise ArithmeticError("the bank is closed")
        return f"paid {amount}"

    with pytest.raises(ArithmeticError):
        await agent.run("pay both", conversation_id="c")
    (turn,) = manager.conversation.get_turns("c")
    results = [part for message in turn.raw_messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [part.content for part in results] == ["paid 0"]
    assert (await agent.run("and then?", conversation_id="c")).output == "done"


async def test_the_newest_turn_is_sent_although_a_middle_turn_is_left_out(manager: MemoryManager) -> None:
    manager.add_turn("c", "zero", "", told("zero"))
    manager.add_turn("c", "", "", [{"role": "tool", "tool_call_id": "nobody's", "content": "42"}])
    manager.add_turn("c", "newest", "", told("newest"))
    assert manager.conversation.get_window("c").turns == (0, 2)
    scripted = Scripted()
    await Agent(scripted.model, capabilities=[Memory(manager)]).run("go", conversation_id="c")
    assert scripted.texts == [["zero", "newest", "go"]]


@pytest.mark.parametrize("messages", [[], told("p")])
async def test_a_summary_that_does_not_fit_the_budget_is_left_out(messages: list[Any]) -> None:
    manager = MemoryManager(summarize_threshold=20, summarizer=lambda _: "sum " * 200, max_conversation_tokens=60)
    for number in range(4):
        manager.add_turn("c", f"prompt {number} " + "word " * 15, "", messages and told("word " * 15))
    assert any("the summary" in reason for reason in manager.conversation.get_window("c").left_out)
    scripted = Scripted()
    await Agent(scripted.model, capabilities=[Memory(manager)]).run("go", conversation_id="c")
    assert scripted.instructions == [""]


async def test_a_given_history_keeps_its_summary(manager: MemoryManager) -> None:
    summarized = MemoryManager(summarize_threshold=20, summarizer=lambda _: "Ada lives in Lyon")
    for number in range(6):
        summarized.add_turn("c", f"prompt {number} " + "word " * 20, "answer")
    scripted = Scripted()
    history = summarized.get_message_history("c")
    await ReActPattern().execute(Agent(scripted.model, name="a"), "go", memory=summarized, message_history=history)
    assert "Ada lives in Lyon" in scripted.texts[0][0]
    assert "None" not in scripted.instructions[0]


async def test_a_conversation_of_any_name_has_facts_of_its_own(manager: MemoryManager) -> None:
    manager.set_fact("shared", "by all")
    manager.fork("user:ada").set_fact("hers", "alone")
    for conversation_id in ("default", "user:ada", "x" * 512):
        scripted = Scripted({"remember": {"key": "mine", "value": conversation_id}}, "done")
        memory = Memory(manager, tools=True)
        agent = Agent(scripted.model, capabilities=[memory])
        await agent.run("go", conversation_id=conversation_id)
        await agent.run("and?", conversation_id=conversation_id)
        assert scripted.instructions[0] == f"{TOLD}- shared: by all"
        assert conversation_id in scripted.instructions[-1]


@pytest.mark.parametrize("scope", [None, "", 7])
async def test_an_invalid_scope_name_is_refused(manager: MemoryManager, scope: Any) -> None:
    agent = Agent(Scripted().model, capabilities=[Memory(manager, working_scope=lambda _: scope)])
    with pytest.raises(ConfigurationError, match="working_scope returned"):
        await agent.run("go")


async def test_the_texts_are_stored_if_counting_tokens_warns() -> None:
    manager = MemoryManager(estimator=estimator_that_warns_once())
    agent = Agent(Scripted({"look": {}}, "fine").model, capabilities=[Memory(manager)])

    @agent.tool_plain
    def look() -> str:
        return "\ud83d"

    await agent.run("one", conversation_id="c")
    assert stored(manager) == [("one", "fine")]


async def test_the_prompt_of_a_turn_is_what_the_user_said(manager: MemoryManager) -> None:
    agent: Agent[None, Any] = Agent(
        Scripted({"pay": {}}, "done").model,
        output_type=[str, DeferredToolRequests],
        capabilities=[Memory(manager)],
    )

    @agent.tool_plain(requires_approval=True)
    def pay() -> ToolReturn:
        return ToolReturn("ok", content="a receipt that nobody typed")

    waiting = await agent.run("pay", conversation_id="c")
    approved = DeferredToolResults(approvals={call.tool_call_id: True for call in waiting.output.approvals})
    await agent.run("and hurry", deferred_tool_results=approved, conversation_id="c")
    assert stored(manager) == [("pay", ""), ("and hurry", "done")]


async def test_a_cancellation_goes_before_the_error_of_the_work() -> None:
    async def fails() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        raise StaleConversationError("c", 1, 2)

    task = asyncio.ensure_future(to_its_end(fails()))
    for _ in range(2):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert isinstance(caught.value.__cause__, StaleConversationError)


async def test_a_tool_sees_the_window_and_the_run(manager: MemoryManager) -> None:
    seen: list[int] = []
    agent = Agent(Scripted({"look": {}}, "done", {"look": {}}, "done").model, capabilities=[Memory(manager)])

    @agent.tool
    def look(ctx: RunContext[None]) -> str:
        seen.append(len(ctx.messages))
        return "seen"

    for prompt in ("one", "two"):
        await agent.run(prompt, conversation_id="c")
    assert seen == [2, 6]


# Halves of characters, which no provider can be sent


async def test_a_lone_surrogate_harms_no_later_run(manager: MemoryManager) -> None:
    def provider(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        "".join(str(getattr(part, "content", "")) for message in messages for part in message.parts).encode()
        (info.instructions or "").encode()
        return ModelResponse(parts=[TextPart("fine")])

    manager.set_fact("half", "\ud83d")
    agent = Agent(FunctionModel(provider), capabilities=[Memory(manager)])
    with pytest.raises(UnicodeEncodeError):
        await agent.run("half: \ud83d, whole: \ud83d\ude00", conversation_id="c")
    assert (await agent.run("and now?", conversation_id="c")).output == "fine"
    assert manager.conversation.get_turns("c")[0].user_prompt == "half: \ud83d, whole: \ud83d\ude00"
    (message, *_) = manager.get_message_history("c")
    assert message.parts[0].content == "half: \ufffd, whole: \U0001f600"


# A store that goes away in the middle of a run


async def test_unreachable_facts_do_not_end_a_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "memory.db"
    async with SQLiteStore(path) as store:
        manager = MemoryManager(store=store)
        await manager.async_set_fact("known", "before")
        both: dict[str, Any] = {"remember": {"key": "k", "value": "v"}, "recall": {"key": "known"}}
        scripted = Scripted({"leave": {}}, both, "the answer")
        agent = Agent(scripted.model, capabilities=[Memory(manager, tools=True)])

        @agent.tool_plain
        async def leave() -> str:
            await manager.async_set_fact("new", "since")  # so that the facts would be read again
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("ALTER TABLE memory_entries RENAME TO gone")
            return "left"

        assert (await agent.run("go", conversation_id="c")).output == "the answer"
    assert ["before" in told for told in scripted.instructions] == [True] * 3
    assert scripted.texts[-1].count("'k': the memory cannot be reached") == 1
    assert scripted.texts[-1].count("'known': the memory cannot be reached") == 1
    assert "were not read again" in caplog.text


async def test_a_failed_tool_call_is_stored_when_the_run_breaks_off(manager: MemoryManager) -> None:
    agent = Agent(Scripted({"pay": {}, "crash": {}}).model, capabilities=[Memory(manager)])

    @agent.tool_plain
    def pay() -> str:
        raise ToolFailed("no money")

    @agent.tool_plain(sequential=True)
    def crash() -> str:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        await agent.run("go", conversation_id="c")
    (turn,) = manager.conversation.get_turns("c")
    results = [part for message in turn.raw_messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [(part.tool_name, part.content) for part in results] == [("pay", "no money")]
