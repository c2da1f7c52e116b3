"""What belongs to one run of an agent that remembers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import ReinjectSystemPrompt
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
    UserPromptPart,
    repair_messages,
)
from pydantic_ai.models import ModelRequestContext

from firefly_memory.agents.turn_of_run import own_messages
from firefly_memory.manager import MemoryManager
from firefly_memory.messages import summary_text
from firefly_memory.turns import Window


class RunState:
    """The window that the run was given, and what it has said so far."""

    def __init__(self) -> None:
        self._context = ""
        self._context_as_of: int | None = None
        self._summary = ""
        self._told: set[str] = set()
        self._is_given_window = False
        self._messages: list[ModelMessage] = []
        self._results: dict[str, ToolReturnPart] = {}

    def begin(self, loaded: Window, history: list[ModelMessage]) -> None:
        """Put the window into the run's ``history``, unless the caller has given it another one."""
        self._messages = history
        if history:
            return
        history[:] = loaded.messages
        if history and _is_summary(history[0]):
            del history[0]
            self._summary = summary_text(str(loaded.summary))
        self._is_given_window = bool(history)

    def look_at(self, ctx: RunContext[Any]) -> None:
        """Remember where the messages are: the run changes to another list on its way."""
        self._messages = ctx.messages

    def close_calls(self, history: list[ModelMessage]) -> None:
        """For a new prompt: calls that were never answered, by a run that broke off or waited, will not be now, and a
        response that its provider has suspended is not waited for."""
        if not self._is_given_window:
            return
        newest = history[-1]
        if isinstance(newest, ModelResponse) and newest.state == "suspended":
            history[-1] = replace(newest, state="interrupted")
        history[:] = repair_messages(history)

    async def instructions(self, manager: MemoryManager, *, with_context: bool) -> str:
        """What the model is told beside the messages. Facts are read anew when somebody has written some."""
        if with_context and self._context_as_of != manager.working.writes:
            self._context_as_of = manager.working.writes
            self._context = await manager.async_get_working_context()
        texts = [text for text in (self._summary, self._context) if text]
        self._told.update(texts, ["\n\n".join(texts)] if texts else [])
        return "\n\n".join(texts)

    async def with_system_prompt(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The agent's own system prompt in front: stored turns do not have it."""
        if not self._is_given_window:
            return request_context
        return await ReinjectSystemPrompt[Any]().before_model_request(ctx, request_context)

    def keep_result(self, call: ToolCallPart, result: Any) -> None:
        """A tool has returned, which the messages say only when all that were called at once have."""
        content, metadata = (result.return_value, result.metadata) if isinstance(result, ToolReturn) else (result, None)
        part = ToolReturnPart(call.tool_name, content, tool_call_id=call.tool_call_id, metadata=metadata)
        self._results[call.tool_call_id] = part

    def own(self, messages: list[ModelMessage], ctx: RunContext[Any]) -> list[ModelMessage]:
        """Those to be stored of a run that has come to its end."""
        longest_first = sorted(self._told, key=len, reverse=True)
        return own_messages(messages, ctx.run_id, longest_first)

    def said_so_far(self, ctx: RunContext[Any]) -> list[ModelMessage]:
        """Those to be stored of a run that broke off: what was asked, at least, and the results that there were."""
        own = self.own(self._messages, ctx)
        if not own and ctx.prompt is not None:
            own = [self._request(ctx, [UserPromptPart(ctx.prompt)])]
        known = [self._results[call_id] for call_id in self._open_calls() if call_id in self._results]
        return [*own, self._request(ctx, known)] if known else own

    def _open_calls(self) -> list[str]:
        calls: dict[str, None] = {}
        for message in self._messages:
            for part in message.parts:
                call_id = getattr(part, "tool_call_id", "")
                if isinstance(message, ModelResponse) and isinstance(part, ToolCallPart):
                    calls[call_id] = None
                elif isinstance(message, ModelRequest):
                    calls.pop(call_id, None)
        return list(calls)

    @staticmethod
    def _request(ctx: RunContext[Any], parts: list[Any]) -> ModelRequest:
        now = datetime.now(UTC)
        return ModelRequest(parts=parts, timestamp=now, run_id=ctx.run_id, conversation_id=ctx.conversation_id)


def _is_summary(message: Any) -> bool:
    metadata = getattr(message.parts[0], "metadata", None) if len(message.parts) == 1 else None
    return (metadata or {}).get("firefly_memory") == "summary"
