"""A chat over HTTP that streams its answers and remembers: python examples/fastapi_chat.py memory.db 8000

    curl -N -d '{"prompt": "Hello"}' -H 'content-type: application/json' localhost:8000/chat/ada
    curl localhost:8000/chat/ada

A real model answers if FIREFLY_EXAMPLE_MODEL names one, such as openai:gpt-4o-mini.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from firefly_memory import MemoryManager, SQLiteStore
from firefly_memory.agents import FireflyAgent


async def answer(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
    for word in f"I was sent {len(messages)} messages.".split():
        yield f"{word} "


class Question(BaseModel):
    prompt: str


def application(path: str) -> FastAPI:
    memory = MemoryManager(store=SQLiteStore(path))
    model = os.environ.get("FIREFLY_EXAMPLE_MODEL") or FunctionModel(stream_function=answer)
    # What the model remembers is a fact of the conversation: what one user says is not told to others.
    agent = FireflyAgent(name="assistant", model=model, memory=memory, memory_tools=True)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with memory.store:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/chat/{conversation_id}")
    async def chat(conversation_id: str, question: Question) -> StreamingResponse:
        async def words() -> AsyncIterator[str]:
            async with agent.run_stream(question.prompt, conversation_id=conversation_id) as stream:
                async for text in stream.stream_text(delta=True, debounce_by=None):
                    yield text

        return StreamingResponse(words(), media_type="text/plain")

    @app.get("/chat/{conversation_id}")
    async def turns(conversation_id: str) -> list[dict[str, str]]:
        found = await memory.conversation.async_get_turns(conversation_id)
        return [{"user": turn.user_prompt, "assistant": turn.assistant_response} for turn in found]

    return app


if __name__ == "__main__":
    uvicorn.run(application(sys.argv[1]), port=int(sys.argv[2]))
