"""A chat that goes on in another process: run it with a path of a SQLite file, as often as you like.

A real model answers if FIREFLY_EXAMPLE_MODEL names one, such as openai:gpt-4o-mini.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from pydantic_ai import ModelMessage, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from firefly_memory import MemoryManager, SQLiteStore
from firefly_memory.agents import FireflyAgent


def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Says what it was told, which it knows from the messages that it is sent only."""
    said = [str(part.content) for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    earlier = f"Before that you said: {' / '.join(said[:-1])}" if said[1:] else "We have just met."
    return ModelResponse(parts=[TextPart(f"You say: {said[-1]} {earlier}")])


async def chat(path: str, prompts: list[str]) -> None:
    async with SQLiteStore(path) as store:
        memory = MemoryManager(store=store)
        model = os.environ.get("FIREFLY_EXAMPLE_MODEL") or FunctionModel(answer)
        agent = FireflyAgent(name="assistant", model=model, memory=memory)
        for prompt in prompts:
            result = await agent.run(prompt, conversation_id="ada")
            print(f"  Ada:    {prompt}\n  Agent:  {result.output}", flush=True)


path, *prompts = sys.argv[1:]
if prompts:
    print(f"Process {os.getpid()}", flush=True)
    asyncio.run(chat(path, prompts))
else:
    for prompt in ("My name is Ada.", "What is my name?"):
        subprocess.run([sys.executable, __file__, path, prompt], check=True)  # noqa: S603 - this very file
