"""``python -m tests.support.durable_worker URL how``: a workflow of DBOS runs an agent; ``how`` says where its process dies.

Printed are what the workflow returns, and how many messages each request to the model of this process had.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from typing import Any

from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from firefly_memory import MemoryManager, connect
from firefly_memory.agents import Memory


async def main(url: str, how: str) -> None:
    logging.disable()
    manager = MemoryManager(store=connect(url))
    asked: list[int] = []

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(len(messages))
        return ModelResponse(parts=[ToolCallPart("look", {}) if len(messages) == 1 else TextPart("it is red")])

    capabilities: list[Any] = [Memory(manager), DBOSDurability()]
    agent = Agent(FunctionModel(respond), name="assistant", capabilities=capabilities)

    @agent.tool_plain
    async def look() -> str:
        if how == "dies in a tool":
            os._exit(9)
        return "seen"

    @DBOS.workflow()
    async def ask(prompt: str) -> str:
        result = await agent.run(prompt, conversation_id="c")
        if how == "dies after the run":
            os._exit(9)
        return str(result.output)

    DBOS.launch()
    if how == "recovers":
        output: str = await (await DBOS.retrieve_workflow_async("w")).get_result()
    else:
        with SetWorkflowID("w"):
            output = await ask("which mode?")
    print(json.dumps([output, asked]))
    DBOS.destroy()
    await manager.conversation.store.close()


if __name__ == "__main__":
    system = os.environ["DBOS_SYSTEM"]
    DBOS(config={"name": "app", "system_database_url": system, "application_version": "1"})
    asyncio.run(main(*sys.argv[1:]))
