"""A manager and two workers, whose messages are in one store, and what each of them sees of the others.

python examples/team.py team.db                                   in a SQLite file
python examples/team.py postgresql://USER:PASSWORD@HOST/DATABASE  in PostgreSQL

A real model answers if FIREFLY_EXAMPLE_MODEL names one, such as openai:gpt-4o-mini.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from uuid import uuid4

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from firefly_memory import connect
from firefly_memory.agents import feed_memory
from firefly_memory.feeds import (
    BaseMemory,
    HierarchicalMessageStoreMemory,
    MessageStoreMemory,
    SQLMessageStore,
    create_assistant_message,
    create_global_observation,
    create_user_message,
)

ROWS = {"orders": 1200, "customers": 85}


def model(*calls: ToolCallPart, then: Callable[[list[str]], str]) -> FunctionModel | str:
    """Takes the place of a language model: calls tools, and makes an answer of their results."""

    def respond(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        results = [str(part.content) for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        return ModelResponse(parts=[TextPart(then(results))] if results else calls)

    return os.environ.get("FIREFLY_EXAMPLE_MODEL") or FunctionModel(respond)


def worker(memory: BaseMemory, table: str) -> Agent[None, str]:
    counting = model(ToolCallPart("count_rows", {"table": table}), then=lambda rows: f"{table} has {rows[0]} rows.")
    agent = Agent(
        counting,
        name=memory.agent_key,
        instructions="Count with your tool, and answer in one sentence.",
        capabilities=[feed_memory(memory, role="worker")],
    )

    @agent.tool_plain
    def count_rows(table: str) -> int:
        return ROWS.get(table, 0)

    return agent


def manager(memory: BaseMemory, workers: dict[str, Agent[None, str]]) -> Agent[None, str]:
    tasks = {name: f"Count the rows of {table}." for name, table in zip(workers, ROWS, strict=True)}
    asking = model(*(ToolCallPart("ask", {"worker": name, "task": tasks[name]}) for name in tasks), then=" ".join)
    agent = Agent(
        asking,
        name=memory.agent_key,
        instructions=f"Ask each worker for one table. The workers are {', '.join(workers)}.",
        capabilities=[feed_memory(memory, role="worker")],
    )

    @agent.tool_plain
    async def ask(worker: str, task: str) -> str:
        return (await workers[worker].run(task)).output if worker in workers else f"nobody is called {worker}"

    return agent


async def show(memory: BaseMemory) -> None:
    print(f"\n{memory.agent_key} sees:")
    for message in await memory.get_history():
        what = f"{message['tool']} {message['args']}" if message["type"] == "action" else message["content"]
        print(f"  {message.get('agent_key', '-'):12} {message['type']:18} {what}")


async def main(where: str) -> None:
    url = where if "://" in where else f"sqlite:///{where}"
    async with connect(url) as store:
        messages, job = SQLMessageStore(store), f"job-{uuid4().hex[:8]}"
        names = ["worker_1", "worker_2"]
        of_workers = {name: MessageStoreMemory(messages, job, name) for name in names}
        of_manager = HierarchicalMessageStoreMemory(messages, job, "manager", names)
        orchestrator = MessageStoreMemory(messages, job, "orchestrator")
        print(f"All messages are in {job}.")

        await messages.async_append(job, create_user_message("How many orders and customers are there?"))
        await orchestrator.add(create_global_observation("The database is read only."))
        workers = {name: worker(of_workers[name], table) for name, table in zip(names, ROWS, strict=True)}
        result = await manager(of_manager, workers).run("Count the orders and the customers.")
        await messages.async_append(job, create_assistant_message(result.output))

        for memory in (of_manager, *of_workers.values(), orchestrator):
            await show(memory)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
