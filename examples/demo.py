"""An agent whose process is killed in the middle of an answer, and which goes on in another process.

python examples/demo.py memory.db               the demonstration
python examples/demo.py memory.db "A prompt"    one process: a run of the agent for each prompt
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from pydantic_ai import Agent, ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from firefly_memory import MemoryManager, SQLiteStore
from firefly_memory.agents import Memory

PROMPTS = ["Which night train goes from Zürich to Vienna?", "What do we pay for two beds, there and back?"]
KILL_AT = "together"
FIREFLY = os.path.relpath(Path(sys.executable).with_name("firefly-memory"))


async def model(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """Takes the place of a language model. Like one, it knows nothing but the messages that it receives."""
    parts = [part for message in messages for part in message.parts]
    trains = [part.model_response_object() for part in parts if isinstance(part, ToolReturnPart)]
    if not trains:
        yield {0: DeltaToolCall(name="find_train", json_args='{"start": "Zürich", "destination": "Vienna"}')}
        return
    name, leaves, price = trains[0]["name"], trains[0]["leaves"], trains[0]["price"]
    prompts = [part.content for part in parts if isinstance(part, UserPromptPart)]
    answer = f"{name} leaves at {leaves}. A bed costs {price:.2f} EUR."
    if prompts[-1] == PROMPTS[1]:
        answer = f"You need 4 times {price:.2f} EUR, together {4 * price:.2f} EUR, on the train {name}."
    for word in answer.split():
        await asyncio.sleep(0.12)
        yield f"{word} "


def find_train(start: str, destination: str) -> dict[str, object]:
    print(f"(calls the tool: find_train {start}, {destination}) ", end="", flush=True)
    return {"name": "NJ 467", "leaves": "21:40", "price": 89.9}


async def chat(path: str, prompts: list[str]) -> None:
    async with SQLiteStore(path) as store:
        memory = Memory(MemoryManager(store=store))
        agent = Agent(FunctionModel(stream_function=model), tools=[find_train], capabilities=[memory])
        for prompt in prompts:
            print(f"  Ada:    {prompt}\n  Agent:  ", end="", flush=True)
            async with agent.run_stream(prompt, conversation_id="ada") as stream:
                async for text in stream.stream_text(delta=True, debounce_by=None):
                    print(text, end="", flush=True)
            print()


def demonstrate(path: str) -> None:
    print("An agent of pydantic-ai with memory. A Python function takes the place of the language model.")
    with process(path, *PROMPTS) as first:
        print(f"\nProcess {first.pid} starts with a new SQLite file.\n", flush=True)
        show(first, until=KILL_AT)
        first.send_signal(signal.SIGKILL)
        print(f"\n\n  kill -9 {first.pid}: the process is dead, in the middle of its answer.\n")
    with process(path, PROMPTS[1]) as second:
        print(f"Process {second.pid} opens the same file. Ada asks her last question again.\n", flush=True)
        show(second)
    print("\nIt knows the train and the price from the first process: it did not call the tool.")
    url = f"sqlite:///{path}"
    print("\nWhat the file holds (firefly-memory ls turns):\n", flush=True)
    subprocess.run([FIREFLY, "ls", "turns", "--where", "conversation_id=ada", "--url", url], check=True)
    print(f"""
The same memory in PostgreSQL, with one command:

  {FIREFLY} copy --from {url} --to postgresql://USER:PASSWORD@HOST/DATABASE

Next: docs/agents.md gives your own agent a memory. docs/tutorial.md builds a chat service on PostgreSQL.""")


def process(path: str, *prompts: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, path, *prompts]
    return subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")


def show(running: subprocess.Popen[str], *, until: str | None = None) -> None:
    """Print what ``running`` prints, while it does so: until its end, or until it has printed the text."""
    assert running.stdout is not None
    shown = ""
    while character := running.stdout.read(1):
        print(character, end="", flush=True)
        shown += character
        if until is not None and shown.endswith(until):
            return


if __name__ == "__main__":
    path, *prompts = sys.argv[1:]
    if prompts:
        asyncio.run(chat(path, prompts))
    else:
        demonstrate(path)
