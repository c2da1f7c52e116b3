"""An agent remembers where only the extra ``agents`` is installed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from firefly_memory import ConversationMemory, MemoryManager, SQLiteStore, create_llm_summarizer
from firefly_memory.agents import Memory


def test_a_run_sees_the_run_before_it(tmp_path: Path) -> None:
    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart(str(len(messages)))])

    async def two_runs() -> list[str]:
        async with SQLiteStore(tmp_path / "memory.db") as store:
            agent = Agent(FunctionModel(answer), capabilities=[Memory(MemoryManager(store=store))])
            return [(await agent.run("hello", conversation_id="c")).output for _ in range(2)]

    assert asyncio.run(two_runs()) == ["1", "3"]


def test_a_model_summarizes() -> None:
    async def summary() -> str | None:
        summarizer = create_llm_summarizer(TestModel(custom_output_text="in short"))
        memory = ConversationMemory(summarize_threshold=1, summarizer=summarizer)
        for number in range(3):
            await memory.async_add_turn("c", f"prompt {number}", "answer")
        return await memory.async_get_summary("c")

    assert asyncio.run(summary()) == "in short"
