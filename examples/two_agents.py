"""Two agents, and a router that gives each task to the one who can do it, with a memory for this task only.

A real model answers if FIREFLY_EXAMPLE_MODEL names one, such as openai:gpt-4o-mini.
"""

from __future__ import annotations

import asyncio
import os

from pydantic_ai.models.test import TestModel

from firefly_memory import MemoryManager
from firefly_memory.agents import FireflyAgent
from firefly_memory.agents.delegation import CapabilityStrategy, DelegationRouter


def agent(name: str, instructions: str, otherwise: str) -> FireflyAgent:
    model = os.environ.get("FIREFLY_EXAMPLE_MODEL") or TestModel(custom_output_text=otherwise)
    return FireflyAgent(name=name, model=model, instructions=instructions)


async def main() -> None:
    memory = MemoryManager()
    memory.set_fact("customer", "Ada")  # the delegates do not see it
    translator = agent("translator", "Translate what you are given into French.", "Bonjour, le monde !")
    coder = agent("coder", "Write Python.", "print('Hello, world!')")

    strategy = CapabilityStrategy({"translator": ["translate", "french"], "coder": ["code", "python"]})
    router = DelegationRouter([translator, coder], strategy, memory=memory)

    conversation = memory.new_conversation()
    for prompt in ("Translate: Hello, world!", "Now write it in Python."):
        result = await router.route(prompt, conversation_id=conversation)
        print(f"{prompt}\n  {result.output}")

    # One after the other asked for at once: each route has a scope of its own, so none sees another's facts.
    results = await asyncio.gather(*(router.route("any", tags=["code"]) for _ in range(5)))
    print(f"{len(results)} more at once")

    turns = memory.conversation.get_turns(conversation)
    print(f"{len(turns)} turns in the conversation, and the facts are {memory.working.to_dict()}")


asyncio.run(main())
