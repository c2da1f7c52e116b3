"""What the contenders for pydantic-ai share: an agent, and a name for each message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from benchmarks.comparison.contender import Answer
from benchmarks.one_turn import ARGUMENTS, INVOICES, TOOL


def agent(answer: Answer, capabilities: Sequence[Any] = ()) -> Agent[None, str]:
    async def respond(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if isinstance(messages[-1].parts[-1], ToolReturnPart):
            return ModelResponse(parts=[TextPart(await answer())])
        return ModelResponse(parts=[ToolCallPart(TOOL, ARGUMENTS, tool_call_id=f"call_{uuid4().hex}")])

    def find_invoices(vendor: str, since: str, until: str) -> list[dict[str, object]]:  # noqa: ARG001
        return INVOICES

    return Agent(FunctionModel(respond), tools=[find_invoices], capabilities=capabilities)


def kinds(messages: Sequence[ModelMessage]) -> list[str]:
    return [_kind(message) for message in messages]


def _kind(message: ModelMessage) -> str:
    part = message.parts[-1]
    if isinstance(part, ToolCallPart):
        return "call"
    if isinstance(part, ToolReturnPart):
        return "result"
    return "answer" if isinstance(message, ModelResponse) else "prompt"
