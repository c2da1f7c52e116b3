"""Pipelines, reasoning and delegation, as a user's type checker sees them."""

from __future__ import annotations

from typing import Any, assert_type

from pydantic_ai import AgentRunResult

from firefly_memory import MemoryManager
from firefly_memory.agents import FireflyAgent
from firefly_memory.agents.delegation import DelegationRouter, RoundRobinStrategy
from firefly_memory.pipeline import AgentStep, Parallel, PipelineContext, PipelineEngine, PipelineResult, ReasoningStep
from firefly_memory.reasoning import PlanAndExecutePattern, ReActPattern, ReasoningResult

manager = MemoryManager()
writer = FireflyAgent(name="writer", memory=manager)
editor = FireflyAgent(name="editor", memory=manager, output_type=int)


async def function_step(context: PipelineContext) -> str:
    return str(context.results["writer"])


def merge(context: PipelineContext, branches: dict[str, PipelineContext]) -> int:
    return len(branches)


engine = PipelineEngine(
    [
        AgentStep(writer, timeout=60, conversation_id="1"),
        function_step,
        Parallel({"a": AgentStep(editor), "b": [ReasoningStep(ReActPattern(), writer)]}, merge=merge),
    ]
)
AgentStep(writer, usage_limit=None)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
AgentStep(writer, timeout="60")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
router = DelegationRouter([writer, editor], RoundRobinStrategy(), memory=manager)


async def run() -> None:
    result = await engine.run(PipelineContext(inputs="hello", memory=manager))
    assert_type(result, PipelineResult)
    assert_type(result.context.conversation_id, str | None)
    reasoned = await PlanAndExecutePattern(max_steps=5).execute(writer, "hello", memory=manager, deps=None)
    assert_type(reasoned, ReasoningResult)
    assert_type(await router.route("hello", tags=["text"], usage=None), AgentRunResult[Any])
    await router.route("hello", tag="text")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    async with router.route_stream("hello") as stream:
        assert_type(await stream.get_output(), Any)
