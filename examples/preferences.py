"""An agent that learns a preference in one process, and knows it in another one, in another conversation.

python examples/preferences.py memory.db                       the demonstration: a process for each prompt
python examples/preferences.py memory.db chat:ada "A prompt"   one process

A real model answers if FIREFLY_EXAMPLE_MODEL names one, such as openai:gpt-4o-mini.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass

from pydantic_ai import Agent, ModelMessage, ModelResponse, RunContext, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from firefly_memory import SQLiteStore
from firefly_memory.agents import LongTermMemory
from firefly_memory.longterm import MemoryService

PROMPTS = [
    ("chat:ada", "Please give me metric units."),
    ("chat:ada", "How much butter goes into a pound cake?"),
    ("chat:bob", "How much butter goes into a pound cake?"),
]


@dataclass
class Request:
    """What the application knows of a request: who is logged in."""

    user_id: str


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Takes the place of a language model. Like one, it knows nothing but what it receives."""
    last = messages[-1].parts[-1]
    if not isinstance(last, UserPromptPart):
        return ModelResponse(parts=[TextPart("I will remember that.")])
    if "metric" in str(last.content):
        fact = {"key": "units", "value": "metric", "fact_type": "user_preference"}
        return ModelResponse(parts=[ToolCallPart("remember", fact)])
    knows = "- units: metric" in (info.instructions or "")
    return ModelResponse(parts=[TextPart("Take 454 g of butter." if knows else "Take a pound of butter.")])


def user_of(ctx: RunContext[Request]) -> str:
    return ctx.deps.user_id


async def answer(path: str, user_id: str, prompt: str) -> None:
    async with SQLiteStore(path) as store:
        service = MemoryService(store)
        agent = Agent(
            os.environ.get("FIREFLY_EXAMPLE_MODEL") or FunctionModel(model),
            deps_type=Request,
            instructions="You help people in the kitchen. Remember what they prefer.",
            capabilities=[LongTermMemory(service, user=user_of)],
        )
        result = await agent.run(prompt, deps=Request(user_id))
        facts = await service.async_get_user_facts(user_id)
    known = {fact.key: fact.value for fact in facts}
    print(f"Process {os.getpid()}\n  {user_id}: {prompt}\n  Agent:    {result.output}\n  Known:    {known}", flush=True)


def main(path: str, *prompt: str) -> None:
    if prompt:
        asyncio.run(answer(path, *prompt))
        return
    for user_id, text in PROMPTS:
        subprocess.run([sys.executable, __file__, path, user_id, text], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
