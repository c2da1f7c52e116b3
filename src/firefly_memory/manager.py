"""``MemoryManager``: conversations and working memory on one store, the object that agents are given."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from firefly_memory.concurrency.async_pairs import Openable
from firefly_memory.conversations.attempts import OnError
from firefly_memory.conversations.memory import ConversationMemory
from firefly_memory.conversations.policy import LongTerm, ShortTerm
from firefly_memory.conversations.profiles import Profile
from firefly_memory.conversations.summarizers import Summarizer
from firefly_memory.conversations.types import ConversationTurn
from firefly_memory.errors import ConfigurationError
from firefly_memory.identifiers import new_entry_id
from firefly_memory.likely_names import answers_guesses
from firefly_memory.protocols import MemoryStore
from firefly_memory.reprs import even_half_built
from firefly_memory.stores.adapter import adapt
from firefly_memory.stores.base import EntryStore
from firefly_memory.stores.memory import InMemoryStore
from firefly_memory.tokens.estimator import TokenEstimator
from firefly_memory.working import WorkingMemory

if TYPE_CHECKING:
    from firefly_memory.settings import MemorySettings

_REALISTIC_THRESHOLD = 3000
"""What to set where the documented default, 10, was meant to be replaced."""


class ManagerOptions(TypedDict, total=False):
    """The options of :meth:`MemoryManager.from_config`."""

    summarizer: Summarizer | None
    estimator: TokenEstimator | None
    working_scope_id: str
    max_conversation_tokens: int
    summarize_threshold: int
    short_term: Sequence[ShortTerm]
    long_term: Sequence[LongTerm]
    profile: Profile | None
    on_error: OnError | None


class _ConversationOptions(TypedDict):
    """The options of conversations, whatever their strategies are."""

    max_tokens: int
    summarize_threshold: int
    summarizer: Summarizer | None
    estimator: TokenEstimator | None
    store: EntryStore
    on_error: OnError | None


class MemoryManager(Openable):
    """``conversation`` and ``working`` memory on one ``store``, with shortcuts to what is used most.

    Without a store everything is in memory. A store that is passed in stays its owner's: ``close()`` closes what the
    manager opened itself. The other arguments are those of :class:`ConversationMemory` and :class:`WorkingMemory`.
    """

    @answers_guesses
    def __init__(
        self,
        *,
        store: MemoryStore | None = None,
        max_conversation_tokens: int = 128_000,
        summarize_threshold: int = 3072,
        summarizer: Summarizer | None = None,
        estimator: TokenEstimator | None = None,
        working_scope_id: str = "default",
        short_term: Sequence[ShortTerm] = (),
        long_term: Sequence[LongTerm] = (),
        profile: Profile | None = None,
        on_error: OnError | None = None,
    ) -> None:
        self._store: EntryStore = InMemoryStore() if store is None else adapt(store)
        self._owns_store = store is None
        self._is_fork = False
        self._options: _ConversationOptions = {
            "max_tokens": max_conversation_tokens,
            "summarize_threshold": summarize_threshold,
            "summarizer": summarizer,
            "estimator": estimator,
            "store": self._store,
            "on_error": on_error,
        }
        self._conversation = ConversationMemory(
            **self._options, short_term=short_term, long_term=long_term, profile=profile
        )
        self._working = WorkingMemory(store=self._store, scope_id=working_scope_id)
        self._scopes = frozenset({self._working.scope_id})

    @classmethod
    def from_config(cls, **options: Unpack[ManagerOptions]) -> Self:
        """A manager as the variables ``FIREFLY_AGENTIC_MEMORY_…`` say, its store opened and initialized.

        ``options`` are those of the class, but for ``store``. Some take the place of a variable.
        """
        manager = cls(**_configured(options))
        manager._owns_store = True
        return manager.__enter__()

    @classmethod
    async def async_from_config(cls, **options: Unpack[ManagerOptions]) -> Self:
        """A manager as the variables ``FIREFLY_AGENTIC_MEMORY_…`` say, its store opened and initialized.

        ``options`` are those of the class, but for ``store``. Some take the place of a variable.
        """
        manager = cls(**_configured(options))
        manager._owns_store = True
        return await manager.__aenter__()

    @even_half_built
    def __repr__(self) -> str:
        return f"MemoryManager(store={self._store!r}, working_scope_id={self._working.scope_id!r})"

    @property
    def conversation(self) -> ConversationMemory:
        """The conversations."""
        return self._conversation

    @property
    def working(self) -> WorkingMemory:
        """The facts of this manager's scope."""
        return self._working

    @property
    def store(self) -> EntryStore:
        """Where everything is kept."""
        return self._store

    @property
    def is_fork(self) -> bool:
        """Whether :meth:`fork` made it. What a model remembers goes into a fork itself, however an agent gets it."""
        return self._is_fork

    def fork(self, working_scope_id: str | None = None, *, conversation_id: str | None = None) -> Self:
        """A manager with the same conversations and store, and a working memory of its own.

        That is the scope ``working_scope_id``, or the facts of the conversation ``conversation_id``. Without either,
        nobody else has its scope. Closing a fork closes nothing.

        A model writes into a fork, so the scope of this manager, or of one that it is a fork of, is refused.
        """
        if working_scope_id is not None and working_scope_id in self._scopes:
            raise ConfigurationError(
                f"{working_scope_id!r} is the manager's own scope, and a model writes into a fork: name another, or "
                "use the manager itself"
            )
        if working_scope_id is None:
            working_scope_id = new_entry_id() if conversation_id is None else "default"
        working = WorkingMemory(store=self._store, scope_id=working_scope_id, conversation_id=conversation_id)
        child = copy(self)
        scopes = self._scopes | {working.scope_id}
        vars(child).update(_owns_store=False, _is_fork=True, _working=working, _scopes=scopes)
        return child

    def with_strategies(
        self,
        *,
        short_term: Sequence[ShortTerm] = (),
        long_term: Sequence[LongTerm] = (),
        profile: Profile | None = None,
    ) -> Self:
        """A manager with the same store, facts and options, whose conversations have these strategies and no others. A
        summarizer is an option, and stays. Closing it closes nothing."""
        other = copy(self)
        conversation = ConversationMemory(**self._options, short_term=short_term, long_term=long_term, profile=profile)
        vars(other).update(_owns_store=False, _conversation=conversation)
        return other

    def new_conversation(self, conversation_id: str | None = None, *, owner: str | None = None) -> str:
        """Make an empty conversation, of ``owner``, and return its id, a new one unless it is given."""
        return self._conversation.new_conversation(conversation_id, owner=owner)

    async def async_new_conversation(self, conversation_id: str | None = None, *, owner: str | None = None) -> str:
        """Make an empty conversation, of ``owner``, and return its id, a new one unless it is given."""
        return await self._conversation.async_new_conversation(conversation_id, owner=owner)

    def add_turn(
        self,
        conversation_id: str,
        user_prompt: str,
        assistant_response: str,
        raw_messages: Sequence[Any] = (),
        *,
        metadata: dict[str, Any] | None = None,
        turn_id: int | None = None,
        idempotency_key: str | None = None,
        expected_turns: int | None = None,
        owner: str | None = None,
        summarize: bool = True,
        input_tokens: int | None = None,
    ) -> ConversationTurn:
        """Append a turn, durably, and return it with the number it got.

        ``raw_messages`` are pydantic-ai's, or any JSON values; without any, the two texts are what is replayed.
        With ``turn_id`` or ``idempotency_key`` a retry returns what the first try stored, and ``TurnConflictError`` is
        raised if that was something else. With ``expected_turns``, ``StaleConversationError`` is raised, and nothing
        stored, if the conversation does not have exactly so many turns. The turn is stored before a summary is made, if
        one is due; with ``summarize=False`` that is left to :meth:`ConversationMemory.summarize`, and the turn's
        ``summary_is_due`` tells whether there is need of it. A new conversation gets ``owner``; ``ConflictError`` is
        raised, and nothing stored, if the conversation has another owner, or none. ``input_tokens`` is the size of the
        last prompt of this turn, as the model reported it; messages of pydantic-ai contain it.
        """
        return self._conversation.add_turn(
            conversation_id,
            user_prompt,
            assistant_response,
            raw_messages,
            metadata=metadata,
            turn_id=turn_id,
            idempotency_key=idempotency_key,
            expected_turns=expected_turns,
            owner=owner,
            summarize=summarize,
            input_tokens=input_tokens,
        )

    async def async_add_turn(
        self,
        conversation_id: str,
        user_prompt: str,
        assistant_response: str,
        raw_messages: Sequence[Any] = (),
        *,
        metadata: dict[str, Any] | None = None,
        turn_id: int | None = None,
        idempotency_key: str | None = None,
        expected_turns: int | None = None,
        owner: str | None = None,
        summarize: bool = True,
        input_tokens: int | None = None,
    ) -> ConversationTurn:
        """Append a turn, durably, and return it with the number it got.

        ``raw_messages`` are pydantic-ai's, or any JSON values; without any, the two texts are what is replayed.
        With ``turn_id`` or ``idempotency_key`` a retry returns what the first try stored, and ``TurnConflictError`` is
        raised if that was something else. With ``expected_turns``, ``StaleConversationError`` is raised, and nothing
        stored, if the conversation does not have exactly so many turns. The turn is stored before a summary is made, if
        one is due; with ``summarize=False`` that is left to :meth:`ConversationMemory.summarize`, and the turn's
        ``summary_is_due`` tells whether there is need of it. A new conversation gets ``owner``; ``ConflictError`` is
        raised, and nothing stored, if the conversation has another owner, or none. ``input_tokens`` is the size of the
        last prompt of this turn, as the model reported it; messages of pydantic-ai contain it.
        """
        return await self._conversation.async_add_turn(
            conversation_id,
            user_prompt,
            assistant_response,
            raw_messages,
            metadata=metadata,
            turn_id=turn_id,
            idempotency_key=idempotency_key,
            expected_turns=expected_turns,
            owner=owner,
            summarize=summarize,
            input_tokens=input_tokens,
        )

    def get_message_history(
        self, conversation_id: str, max_tokens: int | None = None, *, prompt: str | None = None
    ) -> list[Any]:
        """The messages of a conversation to replay: the summary and the newest turns that fit the budget. With the next
        ``prompt``, what a strategy finds for it in its knowledge base stands in front of the turns."""
        return self._conversation.get_message_history(conversation_id, max_tokens, prompt=prompt)

    async def async_get_message_history(
        self, conversation_id: str, max_tokens: int | None = None, *, prompt: str | None = None
    ) -> list[Any]:
        """The messages of a conversation to replay: the summary and the newest turns that fit the budget. With the next
        ``prompt``, what a strategy finds for it in its knowledge base stands in front of the turns."""
        return await self._conversation.async_get_message_history(conversation_id, max_tokens, prompt=prompt)

    def set_fact(self, key: str, value: Any, *, importance: float = 0.5, ttl: float | timedelta | None = None) -> None:
        """Remember ``value`` in working memory, for ``ttl`` seconds or until it is deleted."""
        self._working.set(key, value, importance=importance, ttl=ttl)

    async def async_set_fact(
        self, key: str, value: Any, *, importance: float = 0.5, ttl: float | timedelta | None = None
    ) -> None:
        """Remember ``value`` in working memory, for ``ttl`` seconds or until it is deleted."""
        await self._working.async_set(key, value, importance=importance, ttl=ttl)

    def get_fact(self, key: str, default: Any = None) -> Any:
        """What working memory has under ``key``."""
        return self._working.get(key, default)

    async def async_get_fact(self, key: str, default: Any = None) -> Any:
        """What working memory has under ``key``."""
        return await self._working.async_get(key, default)

    def get_working_context(self) -> str:
        """Working memory as a text for a prompt."""
        return self._working.to_context_string()

    async def async_get_working_context(self) -> str:
        """Working memory as a text for a prompt."""
        return await self._working.async_to_context_string()

    def clear_conversation(self, conversation_id: str) -> None:
        """Delete one conversation, with its turns and its facts."""
        self._conversation.clear(conversation_id)

    async def async_clear_conversation(self, conversation_id: str) -> None:
        """Delete one conversation, with its turns and its facts."""
        await self._conversation.async_clear(conversation_id)

    def clear_working(self) -> None:
        """Delete the facts of this manager's scope."""
        self._working.clear()

    async def async_clear_working(self) -> None:
        """Delete the facts of this manager's scope."""
        await self._working.async_clear()

    def clear_all(self) -> None:
        """Delete every conversation of the store, of every owner, with its facts, and those of this manager's scope.

        It is one call to the store, which keeps the promises of :meth:`ConversationMemory.clear_all` for both.
        """
        self._working.clear_with_conversations()

    async def async_clear_all(self) -> None:
        """Delete every conversation of the store, of every owner, with its facts, and those of this manager's scope.

        It is one call to the store, which keeps the promises of :meth:`ConversationMemory.clear_all` for both.
        """
        await self._working.async_clear_with_conversations()

    def initialize_sync(self) -> None:
        """Open the store now instead of on first use."""
        self._store.initialize_sync()

    async def initialize(self) -> None:
        """Open the store now instead of on first use."""
        await self._store.initialize()

    def close_sync(self) -> None:
        """Close the store, if the manager opened it."""
        if self._owns_store:
            self._store.close_sync()

    async def close(self) -> None:
        """Close the store, if the manager opened it."""
        if self._owns_store:
            await self._store.close()


def _configured(options: ManagerOptions) -> dict[str, Any]:
    if "store" in options:
        raise ConfigurationError(
            "from_config() opens the store itself; for one of your own there is MemoryManager(store=…)"
        )
    from firefly_memory.settings import PREFIX, read_settings, register_facets, warn_the_caller
    from firefly_memory.target import configured_store

    settings = read_settings()
    register_facets(settings)
    threshold_is_set = "summarize_threshold" in options or "summarize_threshold" in settings.model_fields_set
    if options.get("summarizer") is not None and not threshold_is_set:
        warn_the_caller(
            f"the summarizer is called as soon as the turns of a conversation have more than "
            f"{settings.summarize_threshold} tokens together, which is nearly always: "
            f"set {PREFIX}SUMMARIZE_THRESHOLD, for instance to {_REALISTIC_THRESHOLD}"
        )
    if settings.profile is not None and not options.keys() & {"profile", "short_term", "long_term"}:
        options = {**options, "profile": _profile(settings)}
    return {
        "max_conversation_tokens": settings.max_conversation_tokens,
        "summarize_threshold": settings.summarize_threshold,
        "estimator": TokenEstimator(download=settings.download_vocabularies),
        **options,
        "store": configured_store(settings),
    }


def _profile(settings: MemorySettings) -> Profile:
    from firefly_memory.settings import naming
    from firefly_memory.strategies.profile import MemoryProfile

    assert settings.profile is not None
    with naming(settings.variable("profile")):
        return MemoryProfile.from_file(settings.profile)
