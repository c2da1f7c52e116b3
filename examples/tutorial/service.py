# service.py
"""A chat over HTTP that remembers: uvicorn service:app --workers 2"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Body, Depends, FastAPI, Header, HTTPException
from fastapi.responses import StreamingResponse
from pydantic_ai import Agent, ModelMessage, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from sqlalchemy import select
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import ConflictError, ErasedError, MemoryManager, PostgreSQLStore
from firefly_memory.agents import Memory

from models import users


async def repeat(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
    """Takes the place of a language model: it says what it finds in the messages that it receives."""
    parts = [part for message in messages for part in message.parts]
    said = [f'"{part.content}"' for part in parts if isinstance(part, UserPromptPart)]
    for word in f"So far you have said, in this order: {', then '.join(said)}.".split():
        await asyncio.sleep(0.3)
        yield f"{word} "


engine = create_async_engine(os.environ["DATABASE_URL"], pool_pre_ping=True)
memory = MemoryManager(store=PostgreSQLStore(engine=engine, migrate=False), max_conversation_tokens=8_000)
agent = Agent(
    os.environ.get("MODEL") or FunctionModel(stream_function=repeat),
    deps_type=str,  # the name of the user
    capabilities=[Memory(memory, owner=lambda run: run.deps, must_store=True)],
)


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    async with memory.store:
        yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


async def user_of(token: Annotated[str, Header()]) -> str:
    async with engine.connect() as connection:
        name: str | None = await connection.scalar(select(users.c.name).where(users.c.token == token))
    if name is None:
        raise HTTPException(401, "no user has this token")
    return name


@app.post("/chats/{chat}")
async def ask(
    chat: str, prompt: Annotated[str, Body(embed=True)], user: Annotated[str, Depends(user_of)]
) -> StreamingResponse:
    try:
        await memory.conversation.async_get_window(chat, owner=user)
    except ErasedError:
        raise HTTPException(410, "the data of this user was deleted") from None
    except ConflictError:
        raise HTTPException(403, "this chat belongs to somebody else") from None

    async def answer() -> AsyncIterator[str]:
        yield f"(worker {os.getpid()}) "
        async with agent.run_stream(prompt, conversation_id=chat, deps=user) as run:
            async for text in run.stream_text(delta=True, debounce_by=None):
                yield text
        yield "\n"

    return StreamingResponse(answer(), media_type="text/plain")
