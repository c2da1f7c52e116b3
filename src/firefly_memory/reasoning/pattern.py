"""``ReasoningPattern``: the base of all patterns."""

from __future__ import annotations

import asyncio
import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Unpack

from pydantic_ai import AgentRunResult
from pydantic_ai.messages import ModelMessage

from firefly_memory.agents.capability import Memory
from firefly_memory.agents.firefly_agent import memory_of
from firefly_memory.agents.routing import AnyAgent
from firefly_memory.agents.run_messages import prompt_text, response_text
from firefly_memory.agents.run_options import (
    RunOptions,
    has_dynamic_capabilities,
    memory_capability,
    own_scope,
    with_capability,
)
from firefly_memory.agents.turn_recorder import TurnOfSteps
from firefly_memory.concurrency.cancellation import finished
from firefly_memory.errors import ConfigurationError, FireflyMemoryError
from firefly_memory.identifiers import new_entry_id
from firefly_memory.manager import MemoryManager

logger = logging.getLogger("firefly_memory")


@dataclass(frozen=True)
class ReasoningStepDone:
    """A finished step."""

    name: str
    prompt: Any
    output: Any
    result: AgentRunResult[Any] = field(repr=False)
    """The result of the agent's run."""


@dataclass(frozen=True)
class ReasoningResult:
    """The result of a pattern."""

    output: Any
    steps: tuple[ReasoningStepDone, ...]
    conversation_id: str
    facts: dict[str, Any]
    """The facts in the working memory of this run, which is deleted at its end."""


class ReasoningPattern(ABC):
    """A subclass takes its steps in :meth:`reason`, and may have hooks around each step.

    Each run has its own ``state``: ``prompt``, ``agent``, ``conversation_id``, the finished ``steps``, and ``memory``,
    whose working memory begins empty and is deleted when the run ends. ``parent`` is the memory passed to the run, and
    ``options`` are those of ``Agent.run``. The facts in ``state["memory"].working`` are in the model's instructions.
    Many tasks may use one pattern at once.
    """

    @abstractmethod
    async def reason(self, state: dict[str, Any]) -> Any:
        """Take steps with :meth:`step`, and return the answer."""

    def before_step(self, state: dict[str, Any], name: str) -> Any:  # noqa: B027 - a hook is optional
        """A hook that is called before each step, and awaited if it is a coroutine."""

    def after_step(self, state: dict[str, Any], step: ReasoningStepDone) -> Any:  # noqa: B027 - likewise
        """A hook that is called after each step, and awaited if it is a coroutine."""

    async def execute(
        self,
        agent: AnyAgent,
        prompt: Any,
        *,
        memory: MemoryManager | None = None,
        conversation_id: str | None = None,
        **options: Unpack[RunOptions],
    ) -> ReasoningResult:
        """Reason about ``prompt``. The messages of all steps are one turn of the conversation.

        Without ``memory`` the agent's own is used. ``options`` are those of ``Agent.run``, for each step.
        """
        if memory is None:
            memory = _memory_of(agent)
        history: Sequence[ModelMessage] | None = options.pop("message_history", None)
        conversation_id = _conversation_of(conversation_id, history)
        async with own_scope(memory) as scope:
            assert scope is not None
            capability = memory_capability(agent, scope)
            turn = await capability.begin_turn(conversation_id, history, prompt_text(prompt))
            state: dict[str, Any] = {
                "prompt": prompt,
                "agent": agent,
                "conversation_id": conversation_id,
                "memory": scope,
                "parent": memory,
                "steps": [],
                "options": options,
                "_memory": capability.for_step(turn),
            }
            output, conversation_id = await _as_one_turn(self.reason(state), capability, turn, prompt)
            facts = await _facts(scope)
        return ReasoningResult(output, tuple(state["steps"]), conversation_id, facts)

    async def step(self, state: dict[str, Any], name: str, prompt: Any, **options: Unpack[RunOptions]) -> Any:
        """Run the agent and the hooks around it, and return its output. The agent sees the earlier steps."""
        await _awaited(self.before_step(state, name))
        given: dict[str, Any] = {**state["options"], **options, "conversation_id": state["conversation_id"]}
        result = await state["agent"].run(prompt, **with_capability(state["_memory"], given))
        done = ReasoningStepDone(name, prompt, result.output, result)
        state["steps"].append(done)
        await _awaited(self.after_step(state, done))
        return done.output


async def _as_one_turn(reasoning: Any, memory: Memory, turn: TurnOfSteps, prompt: Any) -> tuple[Any, str]:
    """Store the messages of the steps, even after an error. Return the output, and the id of the conversation."""
    asked = prompt_text(prompt)
    try:
        output = await reasoning
    except BaseException:
        # In a task of its own, because this task may be cancelled.
        with suppress(asyncio.CancelledError):  # the error itself is the one to raise
            await finished(memory.end_broken_turn(turn, asked))
        raise
    return output, await memory.end_turn(turn, asked, response_text(output), output)


def _memory_of(agent: AnyAgent) -> MemoryManager:
    own = memory_of(agent)
    if own is None and has_dynamic_capabilities(agent):
        raise ConfigurationError(
            "the agent's capabilities are made anew for each run: say which memory to use: memory=…"
        )
    return MemoryManager() if own is None else own.manager


def _conversation_of(given: str | None, history: Sequence[ModelMessage] | None) -> str:
    """The id by pydantic-ai's rules: ``"new"`` is a new conversation; without an id, the history names it."""
    if given == "new":
        return new_entry_id()
    of_history = (message.conversation_id for message in reversed(history or ()) if message.conversation_id)
    return given or next(of_history, None) or new_entry_id()


async def _facts(scope: MemoryManager) -> dict[str, Any]:
    try:
        return await scope.working.async_to_dict()
    except FireflyMemoryError:
        # The answer is not lost because its facts cannot be read.
        logger.exception("the facts of %r were not read", scope)
        return {}


async def _awaited(result: Any) -> None:
    if inspect.isawaitable(result):
        await result
