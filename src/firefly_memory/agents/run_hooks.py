"""What the capabilities have in common that give a run a history and keep what it says, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from pydantic_ai import Agent, AgentRunResult, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.capabilities.abstract import WrapRunHandler, WrapToolExecuteHandler
from pydantic_ai.exceptions import ToolFailedError, ToolRetryError
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import ToolDefinition

from firefly_memory.agents.run_state import RunState
from firefly_memory.concurrency.cancellation import finished
from firefly_memory.errors import ConfigurationError


class RunHooks(AbstractCapability[Any]):
    """The hooks of a capability with the state of one run."""

    CALLED: ClassVar[str]
    """The name by which users know the capability."""
    _run: RunState

    @classmethod
    def combine(cls, capabilities: Sequence[AbstractCapability[Any]]) -> AbstractCapability[Any]:
        """Refuse several memories: nobody could tell which one has the messages of a run."""
        raise _several(capabilities)

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        """Prepare the loaded history when the run begins."""
        self._run.look_at(ctx)
        if Agent.is_user_prompt_node(node):
            answers = node.deferred_tool_results is not None
            self._run.prepare(ctx, new_prompt=node.user_prompt is not None and not answers)
            if node.user_prompt is None and not answers:
                self._run.resume(ctx)
        return node

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Add the agent's system prompt."""
        return await self._run.before_request(ctx, request_context)

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Keep the result of a tool, for a run that is interrupted or whose messages do not contain the result."""
        self._run.begin_call(call)
        try:
            result = await handler(args)
        except ToolRetryError as retry:
            self._run.keep_refusal(call, retry.tool_retry)
            raise
        except ToolFailedError as failure:
            self._run.keep_refusal(call, failure.tool_failed)
            raise
        self._run.keep_result(call, result)
        return result

    def _check_alone(self, ctx: RunContext[Any]) -> None:
        """``ConfigurationError`` if the run has several memories."""
        memories = [each for each in ctx.capabilities.values() if isinstance(each, RunHooks)]
        if len(memories) > 1:
            raise _several(memories)

    async def _result(
        self, handler: WrapRunHandler, when_it_fails: Callable[[], Coroutine[Any, Any, None]]
    ) -> AgentRunResult[Any]:
        """The result of a run. If it fails or is cancelled, await ``when_it_fails`` before the error is raised."""
        try:
            return await handler()
        except GeneratorExit:  # an ended generator cannot await
            raise
        except BaseException:
            with suppress(asyncio.CancelledError):  # the error itself is the one to raise
                await finished(when_it_fails())
            raise


def _several(memories: Sequence[AbstractCapability[Any]]) -> ConfigurationError:
    names = sorted({each.CALLED for each in memories if isinstance(each, RunHooks)})
    if len(names) == 1:
        return ConfigurationError(f"an agent can use only one {names[0]} capability; got {len(memories)}")
    return ConfigurationError(
        f"an agent can use {' or '.join(names)}, and not both, because each gives it a history: take Memory for the "
        "conversations of one agent, and feed_memory for the messages of a team"
    )
