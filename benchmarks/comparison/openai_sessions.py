"""The sessions of OpenAI Agents: SQLiteSession, and SQLAlchemySession on SQLite and PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool
from agents.extensions.memory import SQLAlchemySession
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from benchmarks.comparison.contender import MESSAGES_OF_A_TURN, NEWEST_TURNS, Answer, Contender
from benchmarks.one_turn import ANSWER, ARGUMENTS, CALL, INVOICES, PROMPT, TOOL


def _called(call_id: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        id=f"fc_{uuid4().hex}", call_id=call_id, name=TOOL, arguments=json.dumps(ARGUMENTS), type="function_call"
    )


def _answered(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id=f"msg_{uuid4().hex}", type="message", role="assistant", status="completed", content=[content]
    )


_AT_ONCE = 20
ITEMS: list[Any] = [
    {"role": "user", "content": PROMPT},
    _called(CALL).model_dump(exclude_unset=True),
    {"type": "function_call_output", "call_id": CALL, "output": json.dumps(INVOICES)},
    _answered(ANSWER).model_dump(exclude_unset=True),
]


class _Scripted(Model):  # type: ignore[misc]
    """Calls the tool, then answers."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    async def get_response(self, *arguments: Any, **options: Any) -> ModelResponse:
        called = _kind(options["input"][-1]) == "result"
        output = _answered(await self.answer()) if called else _called(f"call_{uuid4().hex}")
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


@function_tool  # type: ignore[untyped-decorator]
def find_invoices(vendor: str, since: str, until: str) -> str:  # noqa: ARG001
    """Find invoices."""
    return json.dumps(INVOICES)


def _kind(item: Any) -> str:
    kinds = {"function_call": "call", "function_call_output": "result"}
    return kinds.get(item.get("type"), "answer" if item.get("role") == "assistant" else "prompt")


class _Session(Contender):
    package = "openai-agents"
    reads = "the newest 80 items (`limit=`)"

    def new_session(self, conversation: str) -> Any:
        raise NotImplementedError

    async def open(self, *, create: bool = True) -> None:
        self.create = create
        self.sessions: dict[str, Any] = {}

    def session(self, conversation: str) -> Any:
        if conversation not in self.sessions:
            self.sessions[conversation] = self.new_session(conversation)
        return self.sessions[conversation]

    async def load(self, conversation: str) -> int:
        return len(await self.session(conversation).get_items(limit=NEWEST_TURNS * MESSAGES_OF_A_TURN))

    async def turn(self, conversation: str) -> None:
        await self.load(conversation)
        await self.session(conversation).add_items(ITEMS)

    async def fill(self, conversation: str, turns: int) -> None:
        for start in range(0, turns, _AT_ONCE):  # not all in one transaction: its rows have one and the same time
            await self.session(conversation).add_items(ITEMS * min(_AT_ONCE, turns - start))

    async def run(self, conversation: str, answer: Answer) -> None:
        agent = Agent(name="clerk", model=_Scripted(answer), tools=[find_invoices])
        config = RunConfig(tracing_disabled=True)
        await Runner.run(agent, PROMPT, session=self.session(conversation), run_config=config)

    async def stored(self, conversation: str) -> list[str]:
        return [_kind(item) for item in await self.session(conversation).get_items()]


class OfSQLite(_Session):
    name = "OpenAI Agents, `SQLiteSession`"
    backend = "sqlite"

    def new_session(self, conversation: str) -> SQLiteSession:
        return SQLiteSession(conversation, self.place.path)

    async def close(self) -> None:
        for session in self.sessions.values():
            session.close()


class _OfSQLAlchemy(_Session):
    name = "OpenAI Agents, `SQLAlchemySession`"
    engine: AsyncEngine

    def url(self) -> str:
        raise NotImplementedError

    async def open(self, *, create: bool = True) -> None:
        await super().open(create=create)
        self.engine = create_async_engine(self.url())

    def new_session(self, conversation: str) -> SQLAlchemySession:
        return SQLAlchemySession(conversation, engine=self.engine, create_tables=self.create)

    async def close(self) -> None:
        await self.engine.dispose()


class OfSQLAlchemyOnSQLite(_OfSQLAlchemy):
    backend = "sqlite"

    def url(self) -> str:
        return f"sqlite+aiosqlite:///{self.place.path}"


class OfSQLAlchemyOnPostgreSQL(_OfSQLAlchemy):
    backend = "postgresql"

    def url(self) -> str:
        return self.place.postgresql_url.replace("postgresql://", "postgresql+asyncpg://", 1)
