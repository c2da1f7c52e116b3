"""Agent runs that pause, resume, or are cancelled at their end: the next run gets a true history."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest
from pydantic_ai import (
    Agent,
    BinaryContent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ToolReturn,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from firefly_memory import (
    ConversationMemory,
    ConversationTurn,
    EntryStore,
    MemoryManager,
)
from firefly_memory.agents import Memory
from tests.support.cancellation import cancelled_at, tasks_left
from tests.support.scripted_model import Scripted, stored


class Office:
    """An agent with a tool that answers, one that somebody has to answer, and one that somebody has to approve."""

    def __init__(self, manager: MemoryManager, scripted: Scripted, **options: Any) -> None:
        self.paid: list[str] = []
        self.scripted = scripted
        self.agent: Agent[None, Any] = Agent(
            scripted.model, output_type=[str, DeferredToolRequests], capabilities=[Memory(manager)], **options
        )

        @self.agent.tool_plain
        def look() -> str:
            return "seen"

        @self.agent.tool_plain
        def ask(question: str = "") -> str:
            raise CallDeferred

        @self.agent.tool_plain(requires_approval=True)
        def pay(what: str = "") -> str:
            self.paid.append(what)
            return "payment 17 made"

    async def run(self, prompt: str | None = None, **options: Any) -> Any:
        return (await self.agent.run(prompt, conversation_id="c", **options)).output

    async def paused(self, prompt: str) -> DeferredToolResults:
        requests = await self.run(prompt)
        assert isinstance(requests, DeferredToolRequests)
        return DeferredToolResults(
            calls={call.tool_call_id: "yes" for call in requests.calls},
            approvals={call.tool_call_id: True for call in requests.approvals},
        )

    @property
    def last_asked(self) -> list[tuple[str, str]]:
        parts = [part for message in self.scripted.asked[-1] for part in message.parts]
        return [(part.part_kind, str(getattr(part, "content", ""))) for part in parts]


async def test_a_deferred_call_beside_another_call_can_be_answered(manager: MemoryManager) -> None:
    office = Office(manager, Scripted({"look": {}, "ask": {"question": "a"}}, "done", "later"))
    results = await office.paused("do")
    assert await office.run(deferred_tool_results=results) == "done"
    assert office.last_asked[-2:] == [("tool-return", "seen"), ("tool-return", "yes")]
    await office.run("and")
    assert [text for kind, text in office.last_asked if kind == "tool-return"] == ["seen", "yes"]
    assert stored(manager) == [("do", ""), ("", "done"), ("and", "later")]


async def test_a_paused_turn_is_loaded_whatever_the_budget_is(store: EntryStore) -> None:
    manager = MemoryManager(store=store, max_conversation_tokens=30)
    office = Office(manager, Scripted({"pay": {"what": "word " * 100}}, "done"))
    results = await office.paused("do")
    assert await office.run(deferred_tool_results=results) == "done"


async def test_the_result_of_an_approved_tool_is_stored_although_the_run_failed(manager: MemoryManager) -> None:
    office = Office(manager, Scripted({"pay": {}}, RuntimeError("503"), "fine"))
    results = await office.paused("do")
    with pytest.raises(RuntimeError, match="503"):
        await office.run(deferred_tool_results=results)
    await office.run("did you pay?")
    assert office.paid == [""]
    assert office.last_asked == [
        ("user-prompt", "do"),
        ("tool-call", ""),
        ("tool-return", "payment 17 made"),
        ("user-prompt", "did you pay?"),
    ]


async def test_a_new_prompt_closes_paused_tool_calls(manager: MemoryManager) -> None:
    office = Office(manager, Scripted({"pay": {}}, "never mind it is", "more"))
    await office.paused("do")
    assert await office.run("never mind") == "never mind it is"
    assert "interrupted" in office.last_asked[2][1]
    assert await office.run("and") == "more"
    assert office.paid == []


async def test_a_new_prompt_abandons_a_response_that_its_provider_suspended(manager: MemoryManager) -> None:
    parts: list[Any] = [TextPart("let me think"), ToolCallPart("look", {})]
    said = [ModelRequest(parts=[UserPromptPart("do")]), ModelResponse(parts=parts, state="suspended")]
    await manager.async_add_turn("c", "do", "let me think", said)
    scripted = Scripted("fine")
    await Agent(scripted.model, capabilities=[Memory(manager)]).run("never mind", conversation_id="c")
    assert scripted.texts[0][:2] == ["do", "let me think"]
    assert scripted.texts[0][-1] == "never mind"


async def test_results_of_tools_are_kept_when_a_run_is_cancelled(manager: MemoryManager) -> None:
    scripted = Scripted({"fast": {}, "rich": {}, "slow": {}}, "fine")
    agent = Agent(scripted.model, capabilities=[Memory(manager)])
    begun = asyncio.Event()

    @agent.tool_plain
    async def fast() -> str:
        return "payment made"

    @agent.tool_plain
    async def rich() -> ToolReturn:
        return ToolReturn("the value", content=["look at this", BinaryContent(b"\xff", media_type="image/png")])

    @agent.tool_plain
    async def slow() -> None:
        begun.set()
        await asyncio.Event().wait()

    run = asyncio.ensure_future(agent.run("do", conversation_id="c"))
    await begun.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await agent.run("what happened?", conversation_id="c")
    parts = [part for message in scripted.asked[-1] for part in message.parts if part.part_kind == "tool-return"]
    assert [str(part.content)[:20] for part in parts] == ["payment made", "the value", "The tool call was in"]
    assert any("look at this" in text for text in scripted.texts[-1])
    assert tasks_left() == set()


# Cancelled at the end


async def test_a_run_cancelled_while_it_is_stored_is_stored_completely(store: EntryStore) -> None:
    manager = MemoryManager(store=store)
    at_the_end = 0
    for wait in range(1, 200):
        name = f"c{wait}"
        agent = Agent(Scripted("the answer").model, capabilities=[Memory(manager)])
        whole = agent.run("one", conversation_id=name)
        try:
            await cancelled_at(wait, whole)
            break
        except asyncio.CancelledError:
            at_the_end += stored(manager, name) == [("one", "the answer")]
    assert stored(manager, name) == [("one", "the answer")]
    assert at_the_end


async def test_a_cancelled_anyio_scope_waits_without_spinning(
    store: EntryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = asyncio.Event()
    real = ConversationMemory.async_add_turn

    async def slow(memory: ConversationMemory, *arguments: Any, **options: Any) -> ConversationTurn:
        await released.wait()
        return await real(memory, *arguments, **options)

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        waiting.set()
        await asyncio.Event().wait()
        raise AssertionError

    def shield(work: Any) -> Any:
        shielded.append(work)
        return real_shield(work)

    waiting, shielded, real_shield = asyncio.Event(), list[Any](), asyncio.shield
    monkeypatch.setattr(ConversationMemory, "async_add_turn", slow)
    monkeypatch.setattr(asyncio, "shield", shield)
    manager = MemoryManager(store=store)
    agent = Agent(FunctionModel(respond), capabilities=[Memory(manager)])
    with anyio.CancelScope() as scope:

        async def cancel_and_release() -> None:
            await waiting.wait()
            scope.cancel()
            for _ in range(1000):
                await asyncio.sleep(0)
            released.set()

        releasing = asyncio.ensure_future(cancel_and_release())
        await agent.run("one", conversation_id="c")
    await releasing
    assert stored(manager) == [("one", "")]
    assert len(shielded) < 100


async def test_cancelling_a_slow_summarizer_keeps_the_turn(store: EntryStore) -> None:
    begun = asyncio.Event()

    async def summarize(turns: list[ConversationTurn]) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    manager = MemoryManager(store=store, summarize_threshold=10, summarizer=summarize)
    await manager.async_add_turn("c", "word " * 20, "yes", summarize=False)
    agent = Agent(Scripted("the answer").model, capabilities=[Memory(manager)])
    run = asyncio.ensure_future(agent.run("one", conversation_id="c"))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert stored(manager)[-1] == ("one", "the answer")
    again = ConversationMemory(store=store, summarize_threshold=10, summarizer=lambda turns: f"{len(turns)} turn")
    again.summarize("c")
    assert again.get_summary("c") == "1 turn"
