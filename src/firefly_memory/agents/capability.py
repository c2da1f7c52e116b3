"""``Memory``: a capability of pydantic-ai that gives an agent the memory of a :class:`MemoryManager`."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias

from pydantic_ai import AgentRunResult, FunctionToolset, RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, ProcessHistory
from pydantic_ai.capabilities.abstract import WrapRunHandler
from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart
from pydantic_ai.models import ModelRequestContext

from firefly_memory.agents.turn_of_run import is_open, own_messages, prompt_text, response_text
from firefly_memory.by_url import connect
from firefly_memory.errors import ConfigurationError, ConflictError, UnknownConversationError
from firefly_memory.manager import MemoryManager
from firefly_memory.messages import summary_text
from firefly_memory.names import new_entry_id
from firefly_memory.turns import Window

logger = logging.getLogger("firefly_memory")

OnConflict = Literal["append", "reject", "branch"]

HistoryStrategy: TypeAlias = Callable[[list[ModelMessage]], Sequence[ModelMessage] | Awaitable[Sequence[ModelMessage]]]
"""Given what would be sent, the window and the run's own messages, it returns what is sent instead. It may be a
coroutine function. It is asked at each request, must not change the messages, and nothing stored changes by it."""


@dataclass
class Memory(AbstractCapability[Any]):
    """``Agent(model, capabilities=[Memory(manager)])``: the agent remembers.

    Before a run the window of its ``conversation_id`` is loaded, and sent in front of what the run itself says; the
    summary and working memory go into the instructions. After it the run's messages are stored as one turn: also of a
    run that was streamed, failed, was cancelled, or waits for a tool. A run that is given a ``message_history`` uses
    that instead, and its turn is stored all the same.
    """

    manager: MemoryManager
    """Whose conversations and working memory."""
    _: KW_ONLY
    id: str | None = "firefly_memory"
    """With one id for all, a ``Memory`` that is given to a run takes the place of the agent's own for that run."""
    max_tokens: int | None = None
    """The budget of the window, by default the manager's."""
    context: bool = True
    """Whether working memory is told to the model."""
    tools: bool = False
    """Whether the model gets the tools ``remember`` and ``recall`` for working memory."""
    strategies: Sequence[HistoryStrategy] = ()
    """What is done to the messages of each request, one after the other; nothing of it is stored."""
    on_conflict: OnConflict = "append"
    """What becomes of a turn whose run had not seen the newest one: it is appended all the same, refused with
    ``StaleConversationError``, or stored in a new conversation that has what the run had seen."""
    _run: _Run = field(init=False, repr=False, compare=False, default_factory=lambda: _Run())  # noqa: PLW0108
    _turn: TurnOfSteps | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.on_conflict not in ("append", "reject", "branch"):
            raise ConfigurationError(f"on_conflict must be 'append', 'reject' or 'branch', not {self.on_conflict!r}")

    @classmethod
    def from_spec(cls, url: str | None = None, working_scope_id: str = "default", **options: Any) -> Self:
        """For agent specs: the store of ``url``, or the one that the environment names."""
        if url is None:
            return cls(MemoryManager.from_config(working_scope_id=working_scope_id), **options)
        return cls(MemoryManager(store=connect(url), working_scope_id=working_scope_id), **options)

    @classmethod
    def combine(cls, capabilities: Sequence[AbstractCapability[Any]]) -> AbstractCapability[Any]:
        """Refused: nobody could tell in which of two memories a turn is."""
        raise ConfigurationError(
            f"an agent, or one run of it, was given {len(capabilities)} of Memory; it can have one"
        )

    async def for_run(self, ctx: RunContext[Any]) -> Memory:
        """A copy with what belongs to one run."""
        own = copy(self)
        own._run = _Run()  # noqa: SLF001 - a copy of this
        return own

    def get_ordering(self) -> CapabilityOrdering:
        """After ``ProcessHistory``, which puts what it makes of a request's messages into the run itself: the window
        does not belong there."""
        return CapabilityOrdering(wrapped_by=[ProcessHistory])

    def get_instructions(self) -> Any:
        """The summary and working memory, as they are at each request."""
        return self._instructions

    async def _instructions(self, ctx: RunContext[Any]) -> str:
        run = self._run
        if run.context is None:
            run.context = await self.manager.async_get_working_context() if self.context else ""
        return "\n\n".join(filter(None, (run.summary, run.context)))

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """``remember`` and ``recall``, if they were asked for."""
        return FunctionToolset([self._remember_tool(), self._recall_tool()]) if self.tools else None

    def _remember_tool(self) -> Any:
        async def remember(key: str, value: str) -> str:
            """Keep a fact for later, under a short key. A fact that is there under this key is replaced."""
            await self.manager.async_set_fact(key, value)
            self._run.context = None
            return "remembered"

        return remember

    def _recall_tool(self) -> Any:
        async def recall(key: str) -> Any:
            """The fact that is kept under a key, or nothing."""
            return await self.manager.async_get_fact(key)

        return recall

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The window in front, for the request only: what the run adds to its own messages stays what it says."""
        self._run.messages = ctx.messages  # not the list that the run began with, and filled from now on
        window = self._run.window
        if window:
            request_context.messages = _behind(window, request_context.messages)
        for strategy in self.strategies:
            made = strategy(list(request_context.messages))
            request_context.messages = list(await made if inspect.isawaitable(made) else made)
        return request_context

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Load, run, store."""
        conversation_id = str(ctx.conversation_id)
        loaded = await self._load(conversation_id) if self._turn is None else self._turn.so_far()
        self._run.take(loaded, ctx.messages)
        try:
            result = await handler()
        except BaseException:
            # In a task of its own: this one may be being cancelled.
            await finished(self._store_what_happened(ctx, loaded))
            raise
        own, response = own_messages(result.all_messages(), ctx), response_text(result.output)
        # Whoever goes on with the result's conversation goes on where its turn is.
        result._state.conversation_id = await self._store(ctx, loaded, own, response, result)  # noqa: SLF001
        return result

    async def begin_turn(self, conversation_id: str, history: Sequence[ModelMessage] | None = None) -> TurnOfSteps:
        """A turn that several runs are parts of; ``history`` is in the place of what is stored."""
        loaded = await self._load(conversation_id)
        return TurnOfSteps(loaded if history is None else replace(loaded, messages=list(history), summary=None))

    def for_step(self, turn: TurnOfSteps) -> Self:
        """A copy for runs that are parts of ``turn``."""
        own = copy(self)
        own._turn = turn  # noqa: SLF001 - a copy of this
        return own

    async def end_turn(self, turn: TurnOfSteps, prompt: str, response: str, result: Any = None) -> str:
        """Store what its runs have said, if they have said anything, and return the id of the conversation."""
        if not turn.messages:
            return turn.loaded.conversation_id
        return await self._add(turn.turn_key, turn.loaded, (prompt, response, turn.messages), result)

    async def _load(self, conversation_id: str) -> Window:
        return await self.manager.conversation.async_get_window(conversation_id, self.max_tokens)

    async def _store_what_happened(self, ctx: RunContext[Any], loaded: Window) -> None:
        messages = own_messages(self._run.messages, ctx, broke_off=True)
        if messages:
            try:
                await self._store(ctx, loaded, messages, response_text(None, messages), None)
            except ConflictError:  # the run's own error is the one to raise
                logger.exception("the turn of a run that broke off was not stored")

    async def _store(
        self, ctx: RunContext[Any], loaded: Window, messages: Sequence[ModelMessage], response: str, result: Any
    ) -> str:
        if self._turn is not None:
            self._turn.messages.extend(messages)
            return loaded.conversation_id
        return await self._add(
            ctx.run_id, loaded, (prompt_text(ctx.prompt, messages), response, list(messages)), result
        )

    async def _add(
        self, key: str | None, loaded: Window, turn: tuple[str, str, list[ModelMessage]], result: Any
    ) -> str:
        """Store the turn, and return the id of the conversation that it is in, or should be in."""
        conversation = self.manager.conversation
        expected = None if self.on_conflict == "append" else loaded.total_turns
        try:
            try:
                await conversation.async_add_turn(
                    loaded.conversation_id, *turn, idempotency_key=key, expected_turns=expected
                )
            except ConflictError as conflict:
                if self.on_conflict == "branch":
                    return await self._branch(loaded, turn)
                conflict.result = result  # type: ignore[attr-defined]
                raise
        except ConflictError:
            raise
        except Exception:
            # The answer is there: that it could not be remembered is no reason to lose it.
            logger.exception("the turn of run %s in %r was not stored", key, loaded.conversation_id)
        return loaded.conversation_id

    async def _branch(self, loaded: Window, turn: tuple[str, str, list[ModelMessage]]) -> str:
        conversation = self.manager.conversation
        try:
            branch = await conversation.async_fork_conversation(loaded.conversation_id, turns=loaded.total_turns)
        except UnknownConversationError:  # it has been deleted meanwhile
            branch = await conversation.async_new_conversation()
        await conversation.async_add_turn(branch, *turn, metadata={"branched_from": loaded.conversation_id})
        logger.warning(
            "%r has gone another way; the turn is in the new conversation %r", loaded.conversation_id, branch
        )
        return branch


@dataclass
class TurnOfSteps:
    """Several runs that are one turn: each sees what those before it said, and none is stored by itself."""

    loaded: Window
    messages: list[ModelMessage] = field(default_factory=list)
    """What its runs have said."""
    turn_key: str = field(default_factory=new_entry_id)

    def so_far(self) -> Window:
        """What the next run sees."""
        return replace(self.loaded, messages=[*self.loaded.messages, *self.messages])


class _Run:
    """What belongs to one run."""

    def __init__(self) -> None:
        self.window: list[ModelMessage] = []
        self.messages: list[ModelMessage] = []
        self.summary = ""
        self.context: str | None = None

    def take(self, loaded: Window, given: list[ModelMessage]) -> None:
        """Use the window, unless a history was given; one that ends in open calls has to be in the run itself, which
        may be about to answer them."""
        if given:
            return
        window = list(loaded.messages)
        if window and _is_summary(window[0]):
            del window[0]
            self.summary = summary_text(str(loaded.summary))
        if window and is_open(window[-1]):
            given[:] = window
        else:
            self.window = window


def _is_summary(message: Any) -> bool:
    (first, *rest) = message.parts
    return not rest and (getattr(first, "metadata", None) or {}).get("firefly_memory") == "summary"


def _behind(window: Sequence[ModelMessage], own: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The run's own messages after the window. A system prompt, which each run says anew, goes in front of all, once:
    models take one that comes later for something that the user says."""
    system = [part for message in own for part in message.parts if isinstance(part, SystemPromptPart)]
    if not system:
        return [*window, *own]
    rest = [_without_system_prompt(message) for message in (*window, *own)]
    return [ModelRequest(parts=system), *(message for message in rest if message.parts)]


def _without_system_prompt(message: ModelMessage) -> ModelMessage:
    """A copy: messages of a history are never changed."""
    if isinstance(message, ModelRequest) and any(isinstance(part, SystemPromptPart) for part in message.parts):
        return replace(message, parts=[part for part in message.parts if not isinstance(part, SystemPromptPart)])
    return message


async def finished(storing: Any) -> bool:
    """Wait for ``storing``, also while this task is being cancelled, and return whether it was."""
    task = asyncio.ensure_future(storing)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    return cancelled
