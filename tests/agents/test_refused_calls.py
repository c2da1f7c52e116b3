"""The stored turn of a streamed run equals the messages of the stream, also if pydantic-ai refused calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, CallDeferred, DeferredToolRequests, ModelRetry, ToolOutput, ToolReturn
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from firefly_memory import MemoryManager
from firefly_memory.agents import Memory

Strategy = Literal["early", "graceful", "exhaustive"]
Calls = list[tuple[str, str]]


class Out(BaseModel):
    number: int


CALLS: dict[str, Calls] = {
    "answered": [("give", '{"n": 1}')],
    "of no tool": [("nothing", "{}")],
    "with wrong arguments": [("give", '{"n": "x"}')],
    "that are no JSON": [("give", '{"n":')],
    "to be tried again": [("retry", "{}")],
    "failed": [("failed", "{}")],
    "mixed": [("give", '{"n": 1}'), ("nothing", "{}"), ("give", '{"n": "x"}'), ("retry", "{}"), ("rich", "{}")],
    "deferred": [("later", "{}"), ("give", '{"n": 1}'), ("nothing", "{}")],
    "to be approved": [("approve", '{"x": "y"}')],
    "final": [("final", '{"number": 1}')],
    "twice final": [("final", '{"number": 1}'), ("final", '{"number": 2}')],
    "final and mixed": [("final", '{"number": 1}'), ("nothing", "{}"), ("final", '{"number": "x"}'), ("retry", "{}")],
}


def agent_that_calls(calls: Calls, text: str, strategy: Strategy, manager: MemoryManager) -> Agent[None, Any]:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        if any(message.kind == "response" for message in messages):
            yield "an answer"
            return
        if text == "before":
            yield "let me see"
        for number, (name, arguments) in enumerate(calls):
            yield {number + 1: DeltaToolCall(name, arguments, tool_call_id=f"call {number}")}
        if text == "after":
            yield "that was it"

    agent: Agent[None, Any] = Agent(
        FunctionModel(stream_function=stream),
        output_type=[str, DeferredToolRequests, ToolOutput(Out, name="final")],
        end_strategy=strategy,
        capabilities=[Memory(manager)],
    )

    @agent.tool_plain
    def give(n: int) -> int:
        return n

    @agent.tool_plain
    def retry() -> None:
        raise ModelRetry("once more")

    @agent.tool_plain
    def failed() -> None:
        raise ToolFailed("no money")

    @agent.tool_plain
    def rich() -> ToolReturn:
        return ToolReturn(1, content=["look"], metadata={"n": 1})

    @agent.tool_plain
    def later() -> None:
        raise CallDeferred

    @agent.tool_plain(requires_approval=True)
    def approve(x: int) -> int:
        return x

    return agent


def parts(messages: Sequence[ModelMessage]) -> list[Any]:
    timeless: dict[str, Any] = {"timestamp": None}
    own = [part for message in messages for part in message.parts]
    return [replace(part, **timeless) if hasattr(part, "timestamp") else part for part in own]


@pytest.mark.parametrize("strategy", ["early", "graceful", "exhaustive"])
@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
async def test_the_stored_messages_equal_the_streamed_ones(calls: Calls, strategy: Strategy) -> None:
    manager = MemoryManager()
    for text in ("before", "after", "none"):
        async with agent_that_calls(calls, text, strategy, manager).run_stream("go", conversation_id=text) as stream:
            await stream.get_output()
        turns = manager.conversation.get_turns(text)
        assert len(turns) == 1
        assert parts(turns[0].raw_messages) == parts(stream.all_messages()), text


async def test_a_refusal_is_stored_although_the_run_breaks_off() -> None:
    manager = MemoryManager()
    agent = agent_that_calls([("nothing", "{}"), ("crash", "{}")], "none", "graceful", manager)

    @agent.tool_plain(sequential=True)
    def crash() -> None:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        async with agent.run_stream("go", conversation_id="c"):
            pass
    (turn,) = manager.conversation.get_turns("c")
    (refused,) = [part for part in parts(turn.raw_messages) if isinstance(part, ToolReturnPart)]
    assert refused.content.startswith("Unknown tool name: 'nothing'")  # type: ignore[union-attr]
