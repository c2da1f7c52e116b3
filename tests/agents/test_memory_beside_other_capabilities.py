"""``Memory`` together with strategies, history processors and instrumentation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import (
    Agent,
    BinaryContent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    MessageHistoryMutatedWarning,
    RunContext,
)
from pydantic_ai.capabilities import AbstractCapability, Instrumentation, ProcessHistory
from pydantic_ai.messages import ModelMessage, UserPromptPart
from pydantic_ai.models.instrumented import InstrumentationSettings

from firefly_memory import MemoryManager
from firefly_memory.agents import Memory
from tests.support.scripted_model import Scripted


def looking(scripted: Scripted, *capabilities: AbstractCapability[Any]) -> Agent[None, str]:
    agent: Agent[None, str] = Agent(scripted.model, capabilities=capabilities)

    @agent.tool_plain
    def look() -> str:
        return "seen"

    return agent


async def say(manager: MemoryManager, *prompts: str) -> None:
    for prompt in prompts:
        scripted = Scripted(f"answer to {prompt}")
        await Agent(scripted.model, capabilities=[Memory(manager)]).run(prompt, conversation_id="c")


# Strategies


async def test_strategies_decide_what_is_sent_and_change_nothing_stored(manager: MemoryManager) -> None:
    await say(manager, "one", "two")
    asked: list[int] = []

    def without_the_first_turn(messages: list[ModelMessage]) -> Sequence[ModelMessage]:
        asked.append(len(messages))
        return messages[2:]

    async def without_the_next(messages: list[ModelMessage]) -> Sequence[ModelMessage]:
        asked.append(len(messages))
        return tuple(messages[2:])

    scripted = Scripted({"look": {}}, "done")
    result = await looking(scripted, Memory(manager, strategies=[without_the_first_turn, without_the_next])).run(
        "three", conversation_id="c"
    )
    assert scripted.texts == [["three"], ["three", "seen"]]
    assert asked == [5, 3, 7, 5], "both at each request, on what would be sent"
    turns = manager.conversation.get_turns("c")
    assert [turn.user_prompt for turn in turns] == ["one", "two", "three"]
    assert turns[-1].raw_messages == result.new_messages()
    assert len(result.new_messages()) == 4


async def test_a_failing_strategy_fails_only_its_own_run(manager: MemoryManager) -> None:
    def broken(messages: list[ModelMessage]) -> list[ModelMessage]:
        raise ArithmeticError("miscounted")

    with pytest.raises(ArithmeticError, match="miscounted"):
        await looking(Scripted(), Memory(manager, strategies=[broken])).run("one", conversation_id="c")
    await say(manager, "two")
    assert manager.conversation.get_turns("c")[-1].user_prompt == "two"


@pytest.mark.parametrize("memory_first", [True, False])
async def test_history_processors_see_the_window_once(memory_first: bool, manager: MemoryManager) -> None:
    await say(manager, "one")
    seen: list[int] = []

    def processor(messages: list[ModelMessage]) -> list[ModelMessage]:
        seen.append(len(messages))
        return messages

    capabilities = [Memory(manager), ProcessHistory(processor)]
    scripted = Scripted({"look": {}}, {"look": {}}, "done")
    agent = looking(scripted, *(capabilities if memory_first else reversed(capabilities)))
    await agent.run("two", conversation_id="c")
    assert seen == [3, 5, 7]
    before = ["one", "answer to one", "two"]
    assert scripted.texts == [before, [*before, "seen"], [*before, "seen", "seen"]]
    assert len(manager.conversation.get_turns("c")[-1].raw_messages) == 6


async def test_a_history_processor_that_separates_a_call_from_its_result_harms_no_later_run(
    manager: MemoryManager,
) -> None:
    scripted = Scripted({"look": {}}, "done")
    await looking(scripted, Memory(manager), ProcessHistory(lambda messages: messages[-1:])).run(
        "one", conversation_id="c"
    )
    following = Scripted("fine")
    await looking(following, Memory(manager)).run("two", conversation_id="c")
    parts = [part.part_kind for message in following.asked[-1] for part in message.parts]
    assert parts == ["text", "user-prompt"], "the result without its call is told to nobody"
    assert manager.conversation.get_turns("c")[0].user_prompt == "one"


# Instrumentation


class Traced:
    """An instrumentation whose spans are recorded: pydantic-ai looks for changed messages only then."""

    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        self.capability = Instrumentation(settings=InstrumentationSettings(tracer_provider=provider))


async def test_no_message_object_is_changed(manager: MemoryManager) -> None:
    """``MessageHistoryMutatedWarning`` is an error here, as every warning is."""
    traced = Traced()
    scripted = Scripted({"look": {}}, "one", {"ask_boss": {}}, "agreed", "streamed", "four")
    agent: Agent[None, Any] = Agent(
        scripted.model,
        system_prompt="You are terse.",
        instructions="Be brief.",
        output_type=[str, DeferredToolRequests],
        capabilities=[traced.capability, Memory(manager, tools=True, strategies=[list])],
    )

    @agent.tool_plain
    def look() -> str:
        return "seen"

    @agent.tool_plain
    def ask_boss() -> str:
        raise CallDeferred

    manager.set_fact("a", "fact")
    await agent.run(["one", BinaryContent(b"\x00\xff", media_type="image/png")], conversation_id="c")
    paused = await agent.run("two", conversation_id="c")
    (call,) = paused.output.calls
    await agent.run(deferred_tool_results=DeferredToolResults(calls={call.tool_call_id: "yes"}), conversation_id="c")
    async with agent.run_stream("three", conversation_id="c") as stream:
        await stream.get_output()
    await agent.run("four", conversation_id="c")
    assert len(manager.conversation.get_turns("c")) == 5
    runs = [span for span in traced.spans.get_finished_spans() if span.name.startswith("invoke_agent")]
    assert len(runs) == 5


async def test_pydantic_ai_warns_of_a_changed_message(manager: MemoryManager) -> None:
    traced = Traced()
    agent = Agent(Scripted({"spoil": {}}, "done").model, capabilities=[traced.capability, Memory(manager)])

    @agent.tool
    def spoil(ctx: RunContext[None]) -> str:
        (part,) = ctx.messages[0].parts
        assert isinstance(part, UserPromptPart)
        part.content = "changed"
        return "spoilt"

    with warnings.catch_warnings(record=True, action="always") as caught:
        await agent.run("one", conversation_id="c")
    assert [warning.category for warning in caught] == [MessageHistoryMutatedWarning]
