"""A pipeline: extract, check from two sides at once, answer. The memory goes from step to step.

A real model answers if FIREFLY_EXAMPLE_MODEL names one, such as openai:gpt-4o-mini.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from pydantic_ai.models.test import TestModel

from firefly_memory import MemoryManager
from firefly_memory.agents import FireflyAgent
from firefly_memory.pipeline import AgentStep, Parallel, PipelineContext, PipelineEngine


def agent(name: str, instructions: str, otherwise: str) -> FireflyAgent:
    model = os.environ.get("FIREFLY_EXAMPLE_MODEL") or TestModel(custom_output_text=otherwise)
    return FireflyAgent(name=name, model=model, instructions=instructions)


async def extract(context: PipelineContext) -> dict[str, Any]:
    """A step of one's own: it sees the inputs and what was done before, and has the memory."""
    sender, _, total = context.inputs.partition(": ")
    assert context.memory is not None
    await context.memory.async_set_fact("doc_type", "invoice")
    return {"from": sender, "total": float(total.removesuffix(" EUR"))}


async def verdict(_context: PipelineContext, branches: dict[str, PipelineContext]) -> str:
    """Takes from the branches what is wanted. What they noted in their forks of the memory stays there."""
    return "; ".join(f"{name}: {branch.output}" for name, branch in branches.items())


async def main() -> None:
    checks = Parallel(
        {
            "sum": AgentStep(agent("accountant", "Is the total plausible? Answer briefly.", "plausible")),
            "sender": AgentStep(agent("clerk", "Do we know the sender? Answer briefly.", "known to us")),
        },
        merge=verdict,
        name="checks",
    )
    writer = agent("writer", "Write one sentence to the customer.", "Your invoice will be paid.")
    engine = PipelineEngine([extract, checks, AgentStep(writer)])

    context = PipelineContext(inputs="Lovelace Ltd: 89.90 EUR", memory=MemoryManager())
    result = await engine.run(context=context)

    for step, output in context.results.items():
        print(f"{step}: {output}")
    assert result.output == context.results["writer"]
    print(engine.graph.render())


asyncio.run(main())
