"""Random runs with ``Memory`` send the same messages as plain pydantic-ai with ``message_history``.

What the model is sent has to be the same, request by request, whatever the runs before did: answered, failed, called
tools that returned, failed, asked for another try, were deferred or had to be approved, streamed or not. And when runs
are cancelled anywhere, which plain pydantic-ai remembers less of, what is sent has to be whole.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    AgentRunResultEvent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    ToolDenied,
    ToolOutput,
    ToolReturn,
    capture_run_messages,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    repair_messages,
)
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from firefly_memory import MemoryManager
from firefly_memory.agents import Memory
from tests.support.cancellation import cancelled_at

pytestmark = [pytest.mark.no_cover, pytest.mark.thorough]

TOOLS = ("give", "fail", "retry", "later", "approve", "rich", "more", "final")


class Out(BaseModel):
    number: int


class Random:
    """A model that does anything, the same for the same seed, and remembers what it was sent."""

    def __init__(self, seed: int, tools: Sequence[str]) -> None:
        self._seed = seed
        self._tools = tools
        self._requests = 0
        self.sent: list[list[dict[str, Any]]] = []
        self.model = FunctionModel(self._respond, stream_function=self._stream)

    def _parts(self, messages: list[ModelMessage], info: AgentInfo) -> list[Any]:
        self.sent.append([_comparable(message) for message in messages if message.parts])
        self._requests += 1
        chance = random.Random(f"{self._seed} {self._requests}")
        kind = chance.random()
        if kind < 0.4:
            return [*[ThinkingPart("hm")] * (kind < 0.1), TextPart(f"text {self._requests}")]
        if kind < 0.5:
            raise RuntimeError("the model is away")
        parts: list[Any] = [TextPart("let me see")] if chance.random() < 0.3 else []
        for number in range(chance.choice([1, 1, 2, 3])):
            name = chance.choice(self._tools)
            if name == "final" and not info.output_tools:
                name = "give"
            arguments = {"number": chance.randrange(4)}
            call = ToolCallPart(name, arguments, tool_call_id=f"{self._requests}-{number}")
            if name == "fail":  # alone, for plain pydantic-ai forgets what others have returned beside it
                return [call]
            parts.append(call)
        return parts

    def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=self._parts(messages, info))

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for index, part in enumerate(self._parts(messages, info)):
            match part:
                case ToolCallPart():
                    yield {
                        index: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)
                    }
                case ThinkingPart():
                    yield {index: DeltaThinkingPart(content=part.content)}
                case _:
                    yield part.content


def _comparable(message: ModelMessage) -> dict[str, Any]:
    (plain,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    kept = {name: plain[name] for name in ("kind", "parts")}
    for part in kept["parts"]:
        part.pop("timestamp", None)
    return kept


def _agent(model: FunctionModel, chance: random.Random, *capabilities: AbstractCapability[Any]) -> Agent[None, Any]:
    output: list[Any] = [str, DeferredToolRequests]
    if chance.random() < 0.5:
        output.append(ToolOutput(Out, name="final"))
    agent: Agent[None, Any] = Agent(
        model,
        output_type=output,
        system_prompt="Be terse." if chance.random() < 0.5 else (),
        instructions="Be kind." if chance.random() < 0.5 else None,
        end_strategy=chance.choice(["early", "graceful", "exhaustive"]),
        capabilities=capabilities,
    )

    @agent.tool_plain
    async def give(number: int) -> int:
        return number

    @agent.tool_plain
    async def fail(number: int) -> int:
        if number == 0:
            raise ArithmeticError("the tool is broken")
        return number

    @agent.tool_plain
    async def retry(number: int) -> int:
        if number < 3:
            raise ModelRetry("more")
        return number

    @agent.tool_plain
    async def later(number: int) -> int:
        raise CallDeferred

    @agent.tool_plain(requires_approval=True)
    async def approve(number: int) -> int:
        return number

    @agent.tool_plain
    async def rich(number: int) -> ToolReturn:
        return ToolReturn(number, content=["look", str(number)], metadata={"n": number})

    @agent.tool
    async def more(ctx: RunContext[None], number: int) -> str:
        ctx.enqueue(f"and {number}")
        return "queued"

    return agent


class Side:
    """One of the two: an agent, its model, and how it is told what was said before."""

    def __init__(self, seed: int, tools: Sequence[str], manager: MemoryManager | None) -> None:
        self.random = Random(seed, tools)
        own = [] if manager is None else [Memory(manager)]
        self._agent = _agent(self.random.model, random.Random(seed), *own)
        self._remembers = manager is not None
        self._history: list[ModelMessage] = []
        self.waits: DeferredToolRequests | None = None

    async def run(self, way: str, prompt: str | None, results: DeferredToolResults | None) -> str | None:
        """How it failed, if it did."""
        options: dict[str, Any] = {"deferred_tool_results": results}
        if self._remembers:
            options["conversation_id"] = "c"
        else:
            new = results is None and prompt is not None
            options["message_history"] = repair_messages(self._history) if new else self._history
        self.waits = None
        with capture_run_messages() as captured:
            try:
                output, self._history = await self._do(way, prompt, options)
            except (AgentRunError, ArithmeticError, RuntimeError) as error:
                self._history = list(captured) or self._history
                return f"{type(error).__name__}: {error}"
        self.waits = output if isinstance(output, DeferredToolRequests) else None
        return None

    async def _do(self, way: str, prompt: str | None, options: dict[str, Any]) -> tuple[Any, list[ModelMessage]]:
        if way == "stream":
            async with self._agent.run_stream(prompt, **options) as stream:
                output = await stream.get_output()
            return output, stream.all_messages()
        if way == "events":
            async with self._agent.run_stream_events(prompt, **options) as events:
                (result,) = [event.result async for event in events if isinstance(event, AgentRunResultEvent)]
        elif way == "iter":
            async with self._agent.iter(prompt, **options) as run:
                async for _ in run:
                    pass
            assert run.result is not None
            result = run.result
        else:
            result = await self._agent.run(prompt, **options)
        return result.output, result.all_messages()


def _answers(requests: DeferredToolRequests, chance: random.Random) -> DeferredToolResults:
    return DeferredToolResults(
        calls={call.tool_call_id: chance.choice([1, "two"]) for call in requests.calls},
        approvals={
            call.tool_call_id: ToolDenied("no") if chance.random() < 0.5 else True for call in requests.approvals
        },
    )


def _as_far_as_plain_knows(ours: list[dict[str, Any]], plain: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of a run that failed, plain pydantic-ai forgets what tools had returned beside the one that failed."""
    interrupted = {
        part["tool_call_id"]: part
        for message in plain
        for part in message["parts"]
        if part.get("outcome") == "interrupted"
    }
    return [
        {**message, "parts": [interrupted.get(part.get("tool_call_id"), part) for part in message["parts"]]}
        if message["kind"] == "request"
        else message
        for message in ours
    ]


async def compare(seed: int, ways: Sequence[str]) -> None:
    manager = MemoryManager()
    # What is queued by a stream that has its final result already, run_stream leaves out of its messages.
    tools = [name for name in TOOLS if name != "more" or "stream" not in ways]
    ours, plain = Side(seed, tools, manager), Side(seed, tools, None)
    chance = random.Random(f"turns {seed}")
    for number, way in enumerate(ways):
        prompt: str | None = f"prompt {number}"
        results = None
        if plain.waits is not None and chance.random() < 0.7:
            results = _answers(plain.waits, chance)
            prompt = chance.choice([None, prompt])
        elif number and chance.random() < 0.15:
            prompt = None
        failed = [await side.run(way, prompt, results) for side in (ours, plain)]
        if "results need to be provided" in str(failed[1]):
            return  # what a plain stream has left open, plain pydantic-ai cannot go on from
        sent = [_as_far_as_plain_knows(*pair) for pair in zip(ours.random.sent, plain.random.sent, strict=True)]
        assert sent == plain.random.sent, (seed, number, way, prompt)
        assert failed[0] == failed[1]


@pytest.mark.parametrize("seed", range(200))
async def test_the_model_is_sent_what_plain_pydantic_ai_would_send(seed: int) -> None:
    chance = random.Random(f"ways {seed}")
    await compare(seed, [chance.choice(["run", "run", "stream", "events", "iter"]) for _ in range(6)])


@pytest.mark.parametrize("seed", range(150))
async def test_every_call_is_answered_once_whenever_runs_are_cancelled(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "firefly_memory")
    chance = random.Random(f"cancelled {seed}")
    manager = MemoryManager()
    side = Side(seed, TOOLS, manager)
    for number in range(8):
        results = _answers(side.waits, chance) if side.waits is not None and chance.random() < 0.6 else None
        prompt = None if results is not None and chance.random() < 0.5 else f"prompt {number}"
        run = side.run(chance.choice(["run", "stream", "events", "iter"]), prompt, results)
        with suppress(asyncio.CancelledError):
            if chance.random() < 0.5:
                side.waits = None
                await cancelled_at(chance.randrange(1, 14), run)
            else:
                assert "UserError" not in (await run or "")
    for sent in side.random.sent:
        _check_calls_and_results(sent)
    stored = [part for turn in manager.conversation.get_turns("c") for each in turn.raw_messages for part in each.parts]
    for kind in ("tool-call", "tool-return"):
        ids = [part.tool_call_id for part in stored if part.part_kind == kind]
        assert len(ids) == len(set(ids)), "nothing is stored twice"


def _check_calls_and_results(sent: list[dict[str, Any]]) -> None:
    calls: set[str] = set()
    for message in sent:
        ids = [part["tool_call_id"] for part in message["parts"] if part["part_kind"] in ("tool-call", "tool-return")]
        if message["kind"] == "response":
            assert not calls, "one was not answered"
            calls = set(ids)
        else:
            assert calls >= set(ids), "one that nobody made was answered"
            calls -= set(ids)
    assert not calls
