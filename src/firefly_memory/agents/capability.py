"""``Memory``: a capability of pydantic-ai that gives an agent the memory of a :class:`MemoryManager`."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

from pydantic_ai import AgentRunResult, FunctionToolset, RunContext
from pydantic_ai.capabilities.abstract import WrapRunHandler
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestContext

from firefly_memory.agents.already_stored import beyond
from firefly_memory.agents.facts import Limits, RunFacts
from firefly_memory.agents.load_history import Loaded, load_window
from firefly_memory.agents.memory_tools import fact_tools, search_tool
from firefly_memory.agents.run_hooks import RunHooks
from firefly_memory.agents.run_messages import (
    asked,
    in_conversation,
    last_text,
    prompt_text,
    prompts_text,
    response_text,
)
from firefly_memory.agents.run_state import RunState
from firefly_memory.agents.scope_of_run import (
    NamedScope,
    Owner,
    WorkingScope,
    check_options,
    owner_of_run,
    scope_of_run,
)
from firefly_memory.agents.turn_recorder import OnConflict, Recorder, Said, TurnOfSteps
from firefly_memory.conversations.policy import LongTerm, ShortTerm
from firefly_memory.conversations.profiles import Profile
from firefly_memory.errors import ConfigurationError
from firefly_memory.manager import MemoryManager
from firefly_memory.reprs import shown
from firefly_memory.strategies.profile import MemoryProfile
from firefly_memory.urls import connect
from firefly_memory.validation import at_least, true_or_false

T = TypeVar("T")

logger = logging.getLogger("firefly_memory")

HistoryStrategy: TypeAlias = Callable[[list[ModelMessage]], Sequence[ModelMessage] | Awaitable[Sequence[ModelMessage]]]
"""A function, or a coroutine function, that is called at each request. It gets the messages to send: the window and the
run's own messages. It returns the messages to send instead, and must not change the messages themselves."""


@dataclass
class Memory(RunHooks):
    """``Agent(model, capabilities=[Memory(manager)])``: the agent remembers.

    Before a run the window of its ``conversation_id`` is loaded and becomes its ``message_history``; the summary and
    working memory go into the instructions. After it the run's messages are stored as one turn, also if the
    run was streamed, failed, was cancelled, or waits for a tool. A ``message_history`` passed to a run replaces the
    window, and the run's turn is stored as well.
    """

    CALLED: ClassVar[str] = "Memory"
    manager: MemoryManager
    """The owner of the conversations and the working memory."""
    _: KW_ONLY
    id: str | None = "firefly_memory"
    """All have the same id, so that a ``Memory`` passed to a run replaces the agent's own for that run."""
    max_tokens: int | None = None
    """The budget of the window, by default the manager's."""
    context: bool = True
    """Whether the instructions contain working memory."""
    tools: bool = False
    """Whether the model gets the tools ``remember`` and ``recall`` for working memory."""
    working_scope: WorkingScope = "conversation"
    """The scope that ``remember`` writes to. A run reads its facts beside those of the manager. By default it is a
    scope of the conversation. A function of the run's context returns the name of another scope, such as
    ``lambda ctx: f"user:{ctx.deps.user_id}"``. With ``"manager"`` a model writes facts for all conversations of the
    manager. If the manager is a fork, the scope is always the fork's own."""
    owner: Owner | None = None
    """The person whose conversations these are, or a function of the run's context that returns it, such as
    ``lambda ctx: ctx.deps.user_id``. New conversations get this owner. A run in a conversation with another owner, or
    without one, ends with ``ConflictError`` before anything is read."""
    overwrite: bool = False
    """Whether ``remember`` may replace a fact that the application wrote."""
    fenced: bool = False
    """Whether the instructions have facts as JSON in a fence, and not as lines."""
    max_fact_tokens: int = 2000
    """The most tokens of facts in the instructions: facts of the application first, then the most important."""
    max_facts: int = 100
    """The most facts in a scope: ``remember`` adds no more."""
    max_key_length: int = 200
    """The most characters in a key of ``remember``."""
    max_value_length: int = 2000
    """The most characters in a value of ``remember``."""
    profile: Profile | None = None
    """The strategies of the conversations, in place of those of the manager: a ``MemoryProfile``."""
    short_term: Sequence[ShortTerm] = ()
    """In place of a profile: strategies that decide what of the window is sent."""
    long_term: Sequence[LongTerm] = ()
    """In place of a profile: strategies that decide which turns leave the window."""
    strategies: Sequence[HistoryStrategy] = ()
    """Functions that change the messages of each request, one after the other; stored messages do not change."""
    on_conflict: OnConflict = "append"
    """What to do with a turn if another turn was added during its run: append it, refuse it with
    ``StaleConversationError``, or store it in a new conversation with the turns that the run has seen."""
    must_store: bool = False
    """Whether a run fails if its turn cannot be stored. ``error.result`` is its result; otherwise the log says so."""
    _run: RunState = field(init=False, repr=False, compare=False, default_factory=RunState)
    _facts: RunFacts | None = field(init=False, repr=False, compare=False, default=None)
    _turn: TurnOfSteps | None = field(init=False, repr=False, compare=False, default=None)
    _owner_of_run: str | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if not isinstance(self.manager, MemoryManager):
            kind = type(self.manager).__name__
            raise ConfigurationError(f"Memory needs a MemoryManager, not {kind}: MemoryManager(store=…) makes one")
        if self.on_conflict not in ("append", "reject", "branch"):
            raise ConfigurationError(
                f"on_conflict must be 'append', 'reject' or 'branch', not {shown(self.on_conflict)}"
            )
        for name in ("context", "tools", "overwrite", "fenced", "must_store"):
            true_or_false(name, getattr(self, name))
        self._limits()  # says what is wrong with them
        if self.max_tokens is not None:
            at_least(1, "max_tokens", self.max_tokens)
        if not isinstance(self.strategies, Sequence) or not all(map(callable, self.strategies)):
            raise ConfigurationError(
                f"strategies must be a list of functions of messages, not {shown(self.strategies)}"
            )
        check_options(self.working_scope, self.owner)
        if self.profile is not None or self.short_term or self.long_term:
            self.manager = self.manager.with_strategies(
                short_term=self.short_term, long_term=self.long_term, profile=self.profile
            )

    @classmethod
    def from_spec(
        cls,
        url: str | None = None,
        *,
        working_scope_id: str = "default",
        working_scope: NamedScope = "conversation",
        owner: str | None = None,
        max_tokens: int | None = None,
        context: bool = True,
        tools: bool = False,
        on_conflict: OnConflict = "append",
        must_store: bool = False,
        overwrite: bool = False,
        fenced: bool = False,
        max_fact_tokens: int = 2000,
        max_facts: int = 100,
        max_key_length: int = 200,
        max_value_length: int = 2000,
        profile: str | None = None,
    ) -> Self:
        """For agent specs: the store of ``url``, or the one that the environment names. ``profile`` is the path of a
        JSON or YAML file with a ``MemoryProfile``."""
        if url is None:
            manager = MemoryManager.from_config(working_scope_id=working_scope_id)
        else:
            manager = MemoryManager(store=connect(url), working_scope_id=working_scope_id)
        return cls(
            manager,
            working_scope=working_scope,
            owner=owner,
            max_tokens=max_tokens,
            context=context,
            tools=tools,
            on_conflict=on_conflict,
            must_store=must_store,
            overwrite=overwrite,
            fenced=fenced,
            max_fact_tokens=max_fact_tokens,
            max_facts=max_facts,
            max_key_length=max_key_length,
            max_value_length=max_value_length,
            profile=None if profile is None else MemoryProfile.from_file(profile),
        )

    async def for_run(self, ctx: RunContext[Any]) -> Memory:
        """A copy with the state of one run."""
        own = copy(self)
        own._run = RunState()  # noqa: SLF001 - a copy of this
        own._owner_of_run = owner_of_run(self.owner, ctx)  # noqa: SLF001 - likewise
        own._facts = RunFacts(  # noqa: SLF001 - likewise
            self.manager.working,
            scope_of_run(self.manager, self.working_scope, ctx),
            self._limits(),
            overwrite=self.overwrite,
            is_fenced=self.fenced,
        )
        return own

    def _limits(self) -> Limits:
        return Limits(self.max_fact_tokens, self.max_facts, self.max_key_length, self.max_value_length)

    @property
    def _facts_of_run(self) -> RunFacts:
        assert self._facts is not None, "for_run() makes the copy that a run uses"
        return self._facts

    def get_instructions(self) -> Any:
        """The summary and working memory."""
        return self._instructions

    async def _instructions(self, ctx: RunContext[Any]) -> str:
        estimator = self.manager.conversation.estimator
        return await self._run.instructions(self._facts_of_run, estimator, with_context=self.context)

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """``remember`` and ``recall``, if ``tools`` is set, and ``search_memory``, if a strategy has a knowledge base
        that is searched by a tool."""
        conversation = self.manager.conversation
        tools = fact_tools(lambda: self._facts_of_run, self.manager) if self.tools else []
        if conversation.is_searched_by_tool:
            tools.append(search_tool(lambda: self._owner_of_run, conversation))
        return FunctionToolset(tools) if tools else None

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Load the window, run the agent, store the turn."""
        self._check_alone(ctx)
        loaded = await (self._load(ctx) if self._turn is None else self._load_step(self._turn))
        self._run.begin(loaded.window, ctx.messages)
        result = await self._result(handler, lambda: self._store_what_was_said(ctx, loaded))
        messages = self._beyond(loaded, self._run.said(result, ctx))
        if self._turn is not None:
            self._turn.messages.extend(messages)
            return result
        if not messages:  # a run without a prompt found its answer in the window
            return result
        said = Said(self._prompt(ctx, loaded, messages), response_text(result.output, messages), messages)
        is_repeated = loaded.is_repeated
        recorder = self._recorder(self._owner_of_run)
        conversation_id = await recorder.add(ctx.run_id, loaded.window, said, result, is_repeated=is_repeated)
        _goes_on_in(result, conversation_id)
        return result

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Add the agent's system prompt, and apply the strategies to the messages of this request only."""
        request_context = await super().before_model_request(ctx, request_context)
        for strategy in self.strategies:
            made = strategy(list(request_context.messages))
            messages = await made if inspect.isawaitable(made) else made
            if not isinstance(messages, Sequence):
                raise ConfigurationError(f"the strategy {shown(strategy)} must return messages, not {shown(messages)}")
            request_context.messages = list(messages)
        return request_context

    async def begin_turn(
        self, conversation_id: str, history: Sequence[ModelMessage] | None = None, prompt: str = ""
    ) -> TurnOfSteps:
        """Begin a turn of several runs. ``history`` replaces the stored turns, and what is found for ``prompt``."""
        conversation, owner = self.manager.conversation, None if callable(self.owner) else self.owner
        query = prompt if history is None else ""
        loaded = (await load_window(conversation, conversation_id, self.max_tokens, None, query, owner)).window
        return TurnOfSteps(loaded if history is None else replace(loaded, messages=list(history), summary=None))

    def for_step(self, turn: TurnOfSteps) -> Self:
        """A copy for the runs of ``turn``."""
        own = copy(self)
        own._turn = turn  # noqa: SLF001 - a copy of this
        return own

    async def end_turn(self, turn: TurnOfSteps, prompt: str, response: str, result: Any = None) -> str:
        """Store the messages of its runs, if there are any, and return the id of the conversation."""
        if not turn.messages:
            return turn.loaded.conversation_id
        said = Said(prompt, response, turn.messages)
        return await self._recorder(turn.owner).add(turn.turn_key, turn.loaded, said, result)

    async def end_broken_turn(self, turn: TurnOfSteps, prompt: str) -> None:
        """Store the messages of its runs up to the error."""
        if turn.messages:
            said = Said(prompt, last_text(turn.messages), turn.messages)
            await self._recorder(turn.owner).add_broken(turn.turn_key, turn.loaded, said)

    def _recorder(self, owner: str | None) -> Recorder:
        return Recorder(self.manager.conversation, self.on_conflict, owner, must_store=self.must_store)

    async def _load(self, ctx: RunContext[Any]) -> Loaded:
        conversation, prompt, owner = self.manager.conversation, prompt_text(ctx.prompt), self._owner_of_run
        return await load_window(conversation, ctx.conversation_id, self.max_tokens, ctx.run_id, prompt, owner)

    async def _load_step(self, turn: TurnOfSteps) -> Loaded:
        """What a run of a turn begins with. Whose turn it is, its first run says."""
        if turn.owner != self._owner_of_run:
            window, turn.owner = turn.loaded, self._owner_of_run
            await self.manager.conversation.async_get_window(window.conversation_id, window.budget, owner=turn.owner)
        return Loaded(turn.so_far())

    def _beyond(self, loaded: Loaded, messages: list[ModelMessage]) -> list[ModelMessage]:
        """The messages that are not stored yet."""
        stored = loaded.said_before or (loaded.unanswered if self._run.has_resumed else [])
        return beyond(messages, stored) if stored else messages

    def _prompt(self, ctx: RunContext[Any], loaded: Loaded, messages: Sequence[ModelMessage]) -> str:
        """The prompt in the messages, from which a history processor may have removed something."""
        if self._run.has_resumed:
            return prompts_text(messages[0])
        said = asked(messages)
        if ctx.prompt is None or (said is None and loaded.said_before):
            return ""
        return prompt_text(ctx.prompt if said is None else said)

    async def _store_what_was_said(self, ctx: RunContext[Any], loaded: Loaded) -> None:
        messages = self._beyond(loaded, self._run.said_so_far(ctx))
        if self._turn is not None:
            self._turn.messages.extend(messages)
        elif messages and not loaded.has_ended:
            said = Said(self._prompt(ctx, loaded, messages), last_text(messages), messages)
            await self._recorder(self._owner_of_run).add_broken(None, loaded.window, said)


def _goes_on_in(result: AgentRunResult[Any], conversation_id: str) -> None:
    """Give the result and its messages the id of the conversation that has the turn."""
    state = result._state  # noqa: SLF001
    if state.conversation_id != conversation_id:
        state.message_history = in_conversation(state.message_history, conversation_id)
        state.conversation_id = conversation_id
