"""``ConversationMemory``: the turns of conversations, and the window of them that a model sees again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.conversations.attempts import Attempts, OnError
from firefly_memory.conversations.flows import Condition, ConversationFlows, Rules
from firefly_memory.conversations.log import Order
from firefly_memory.conversations.policy import LongTerm, ShortTerm
from firefly_memory.conversations.profiles import Profile, checked_strategies
from firefly_memory.conversations.summarizers import Summarizer
from firefly_memory.conversations.transfer import exported, import_into
from firefly_memory.conversations.turn_form import NewTurn
from firefly_memory.conversations.types import ConversationPage, ConversationTurn, FlushInfo, Window
from firefly_memory.errors import ConfigurationError
from firefly_memory.likely_names import answers_guesses
from firefly_memory.protocols import MemoryStore
from firefly_memory.reprs import even_half_built
from firefly_memory.stores.adapter import adapt
from firefly_memory.stores.base import EntryStore
from firefly_memory.stores.memory import InMemoryStore
from firefly_memory.tokens.estimator import TokenEstimator
from firefly_memory.validation import at_least


class ConversationMemory:
    """Conversations by id, each a sequence of turns, in ``store`` or, without one, in memory.

    ``get_message_history`` returns the newest turns that fit ``max_tokens``, whole ones only. With a ``summarizer``,
    as soon as the turns have more than ``summarize_threshold`` tokens together, it summarizes the oldest of them. Its
    summary replaces these turns in the history; they stay stored. ``estimator`` counts the tokens.

    In place of a summarizer, the strategies of ``long_term`` may decide which turns leave the history, and those of
    ``short_term`` what of it is sent (:mod:`firefly_memory.strategies`); ``profile`` has both. If a strategy fails,
    nothing is lost: the log says so, ``on_error`` gets the error and the id, and a later turn tries again.

    Any number of threads, tasks and processes may append to one conversation, as far as the store serves them. Ids are
    given by ``new_conversation`` or by the caller; an unused id is an empty conversation.
    """

    @answers_guesses
    def __init__(
        self,
        *,
        max_tokens: int = 128_000,
        summarize_threshold: int = 3072,
        summarizer: Summarizer | None = None,
        estimator: TokenEstimator | None = None,
        store: MemoryStore | None = None,
        short_term: Sequence[ShortTerm] = (),
        long_term: Sequence[LongTerm] = (),
        profile: Profile | None = None,
        on_error: OnError | None = None,
    ) -> None:
        if summarizer is not None and not callable(summarizer):
            raise ConfigurationError(f"summarizer must be a function of turns, not {type(summarizer).__name__}")
        if estimator is not None and not hasattr(estimator, "estimate_turn"):
            raise ConfigurationError(f"estimator must be a TokenEstimator, not {type(estimator).__name__}")
        strategies = checked_strategies(short_term, long_term, profile, summarizer)
        attempts = Attempts(on_error, pauses=summarizer is None)
        self._rules = Rules(at_least(1, "max_tokens", max_tokens), estimator or TokenEstimator(), attempts)
        self._threshold = at_least(0, "summarize_threshold", summarize_threshold)
        self.store: EntryStore = InMemoryStore() if store is None else adapt(store)
        blocking, suspending = strategies.attached(self.store, summarizer, self._threshold)
        self._blocking = ConversationFlows(self.store.blocking, self._rules, blocking)
        self._suspending = ConversationFlows(self.store.suspending, self._rules, suspending)

    @even_half_built
    def __repr__(self) -> str:
        return f"ConversationMemory(max_tokens={self._rules.max_tokens}, store={self.store!r})"

    @property
    def max_tokens(self) -> int:
        """The budget of ``get_message_history``."""
        return self._rules.max_tokens

    @property
    def summarize_threshold(self) -> int:
        """The most tokens of all turns before the oldest are summarized."""
        return self._threshold

    @property
    def estimator(self) -> TokenEstimator:
        """The estimator that counts the tokens."""
        return self._rules.estimator

    @property
    def is_searched_by_tool(self) -> bool:
        """Whether a strategy has a knowledge base that an agent searches by a tool."""
        return self._suspending.is_searched_by_tool

    def new_conversation(self, conversation_id: str | None = None, *, owner: str | None = None) -> str:
        """Create an empty conversation and return its id: the given id, or a new one.

        ``owner`` is the canonical id of the person whose conversation it is, for ever. If the conversation exists with
        another owner, or with none, ``ConflictError`` is raised; without ``owner`` nobody asks.
        """
        return run_without_loop(self._blocking.new_conversation(conversation_id, owner))

    async def async_new_conversation(self, conversation_id: str | None = None, *, owner: str | None = None) -> str:
        """Create an empty conversation and return its id: the given id, or a new one.

        ``owner`` is the canonical id of the person whose conversation it is, for ever. If the conversation exists with
        another owner, or with none, ``ConflictError`` is raised; without ``owner`` nobody asks.
        """
        return await self._suspending.new_conversation(conversation_id, owner)

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
        one is due; with ``summarize=False`` that is left to :meth:`summarize`, and the turn's ``summary_is_due`` tells
        whether there is need of it. A new conversation gets ``owner``; ``ConflictError`` is raised, and nothing stored,
        if the conversation has another owner, or none. ``input_tokens`` is the size of the last prompt of this turn, as
        the model reported it; messages of pydantic-ai contain it.
        """
        new = NewTurn(user_prompt, assistant_response, raw_messages, metadata, input_tokens=input_tokens)
        condition = Condition(turn_id, idempotency_key, expected_turns, owner)
        return run_without_loop(self._blocking.add_turn(conversation_id, new, condition, summarize=summarize))

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
        one is due; with ``summarize=False`` that is left to :meth:`summarize`, and the turn's ``summary_is_due`` tells
        whether there is need of it. A new conversation gets ``owner``; ``ConflictError`` is raised, and nothing stored,
        if the conversation has another owner, or none. ``input_tokens`` is the size of the last prompt of this turn, as
        the model reported it; messages of pydantic-ai contain it.
        """
        new = NewTurn(user_prompt, assistant_response, raw_messages, metadata, input_tokens=input_tokens)
        condition = Condition(turn_id, idempotency_key, expected_turns, owner)
        return await self._suspending.add_turn(conversation_id, new, condition, summarize=summarize)

    def summarize(self, conversation_id: str) -> None:
        """Summarize now, if there is a summarizer and the turns are above its threshold, or as the strategies say.

        Appending does this by itself, unless ``summarize=False``. An error is logged, and nothing is lost.
        """
        run_without_loop(self._blocking.summarize(conversation_id))

    async def async_summarize(self, conversation_id: str) -> None:
        """Summarize now, if there is a summarizer and the turns are above its threshold, or as the strategies say.

        Appending does this by itself, unless ``summarize=False``. An error is logged, and nothing is lost.
        """
        await self._suspending.summarize(conversation_id)

    def list_flushes(self, conversation_id: str, limit: int | None = None) -> list[FlushInfo]:
        """The flushes that are in force, the newest first: which turns left the history, and what replaced them."""
        return run_without_loop(self._blocking.flushes(conversation_id, limit))

    async def async_list_flushes(self, conversation_id: str, limit: int | None = None) -> list[FlushInfo]:
        """The flushes that are in force, the newest first: which turns left the history, and what replaced them."""
        return await self._suspending.flushes(conversation_id, limit)

    def restore_flush(self, conversation_id: str, flush_id: str) -> None:
        """Bring the turns back that left the history by a flush or by a later one, with the summary from before. A
        strategy that is still due flushes again after the next turn. ``UnknownFlushError`` if there is no such flush,
        ``TurnsDroppedError`` if its turns were deleted."""
        run_without_loop(self._blocking.restore_flush(conversation_id, flush_id))

    async def async_restore_flush(self, conversation_id: str, flush_id: str) -> None:
        """Bring the turns back that left the history by a flush or by a later one, with the summary from before. A
        strategy that is still due flushes again after the next turn. ``UnknownFlushError`` if there is no such flush,
        ``TurnsDroppedError`` if its turns were deleted."""
        await self._suspending.restore_flush(conversation_id, flush_id)

    def get_message_history(
        self, conversation_id: str, max_tokens: int | None = None, *, prompt: str | None = None
    ) -> list[Any]:
        """The messages to replay: the summary, if there is one, and the newest turns that fit the budget.

        Turns are whole, a tool's call and its result stay together, and the estimates of all that is returned do not
        exceed ``max_tokens``. An unknown conversation is empty. ``get_window`` also tells what was left out. With the
        next ``prompt``, what a strategy with a knowledge base finds for it stands in front of the turns, as data.
        """
        return run_without_loop(self._blocking.get_window(conversation_id, max_tokens, prompt=prompt)).messages

    async def async_get_message_history(
        self, conversation_id: str, max_tokens: int | None = None, *, prompt: str | None = None
    ) -> list[Any]:
        """The messages to replay: the summary, if there is one, and the newest turns that fit the budget.

        Turns are whole, a tool's call and its result stay together, and the estimates of all that is returned do not
        exceed ``max_tokens``. An unknown conversation is empty. ``get_window`` also tells what was left out. With the
        next ``prompt``, what a strategy with a knowledge base finds for it stands in front of the turns, as data.
        """
        return (await self._suspending.get_window(conversation_id, max_tokens, prompt=prompt)).messages

    def get_window(
        self,
        conversation_id: str,
        max_tokens: int | None = None,
        *,
        owner: str | None = None,
        prompt: str | None = None,
    ) -> Window:
        """The messages of ``get_message_history``, with a receipt.

        With ``owner``, ``ConflictError`` is raised if the conversation has another owner, or none, and ``ErasedError``
        if this person has been erased.
        """
        return run_without_loop(self._blocking.get_window(conversation_id, max_tokens, owner, prompt))

    async def async_get_window(
        self,
        conversation_id: str,
        max_tokens: int | None = None,
        *,
        owner: str | None = None,
        prompt: str | None = None,
    ) -> Window:
        """The messages of ``get_message_history``, with a receipt.

        With ``owner``, ``ConflictError`` is raised if the conversation has another owner, or none, and ``ErasedError``
        if this person has been erased.
        """
        return await self._suspending.get_window(conversation_id, max_tokens, owner, prompt)

    def search_memory(self, conversation_id: str, query: str, *, owner: str | None = None) -> list[str]:
        """What strategies with a knowledge base of ``search_mode="tool"`` find for a conversation, the best first."""
        return list(run_without_loop(self._blocking.search_memory(conversation_id, query, owner)))

    async def async_search_memory(self, conversation_id: str, query: str, *, owner: str | None = None) -> list[str]:
        """What strategies with a knowledge base of ``search_mode="tool"`` find for a conversation, the best first."""
        return list(await self._suspending.search_memory(conversation_id, query, owner))

    def get_summary(self, conversation_id: str) -> str | None:
        """The summary of the oldest turns, or ``None`` as long as there is none."""
        return run_without_loop(self._blocking.get_summary(conversation_id))

    async def async_get_summary(self, conversation_id: str) -> str | None:
        """The summary of the oldest turns, or ``None`` as long as there is none."""
        return await self._suspending.get_summary(conversation_id)

    def get_turns(
        self, conversation_id: str, limit: int | None = None, after: int | None = None
    ) -> list[ConversationTurn]:
        """All turns, summarized ones included, oldest first, or up to ``limit`` of those after turn ``after``."""
        return run_without_loop(self._blocking.get_turns(conversation_id, limit, after))

    async def async_get_turns(
        self, conversation_id: str, limit: int | None = None, after: int | None = None
    ) -> list[ConversationTurn]:
        """All turns, summarized ones included, oldest first, or up to ``limit`` of those after turn ``after``."""
        return await self._suspending.get_turns(conversation_id, limit, after)

    def get_total_tokens(self, conversation_id: str) -> int:
        """The token estimates of all turns together, summarized ones included."""
        return run_without_loop(self._blocking.get_total_tokens(conversation_id))

    async def async_get_total_tokens(self, conversation_id: str) -> int:
        """The token estimates of all turns together, summarized ones included."""
        return await self._suspending.get_total_tokens(conversation_id)

    @property
    def conversation_ids(self) -> list[str]:
        """The ids of all conversations of the store, oldest first; many are better read page by page."""
        return run_without_loop(self._blocking.conversation_ids())

    async def async_conversation_ids(self) -> list[str]:
        """The ids of all conversations of the store, oldest first; many are better read page by page."""
        return await self._suspending.conversation_ids()

    def list_conversations(
        self, limit: int = 100, after: str | None = None, *, owner: str | None = None, order: Order = "created"
    ) -> ConversationPage:
        """Up to ``limit`` conversations, newest first, from the start or from ``after``, an earlier page's ``next``.

        All, or those of ``owner``. With ``order="updated"`` the conversation with the newest turn is first; one that
        gets a turn while pages are read may be met twice.
        """
        return run_without_loop(self._blocking.list_conversations(limit, after, owner, order))

    async def async_list_conversations(
        self, limit: int = 100, after: str | None = None, *, owner: str | None = None, order: Order = "created"
    ) -> ConversationPage:
        """Up to ``limit`` conversations, newest first, from the start or from ``after``, an earlier page's ``next``.

        All, or those of ``owner``. With ``order="updated"`` the conversation with the newest turn is first; one that
        gets a turn while pages are read may be met twice.
        """
        return await self._suspending.list_conversations(limit, after, owner, order)

    def fork_conversation(
        self, conversation_id: str, new_conversation_id: str | None = None, *, turns: int | None = None
    ) -> str:
        """Copy a conversation, or the first ``turns`` turns of it, into a new one, and return the new one's id.

        The copy has the owner, and the summary unless that stands for turns that are not copied. The two know nothing
        of each other afterwards. ``UnknownConversationError`` if there is none to copy, ``ConflictError`` if the id is
        taken.
        """
        return run_without_loop(self._blocking.fork(conversation_id, new_conversation_id, turns))

    async def async_fork_conversation(
        self, conversation_id: str, new_conversation_id: str | None = None, *, turns: int | None = None
    ) -> str:
        """Copy a conversation, or the first ``turns`` turns of it, into a new one, and return the new one's id.

        The copy has the owner, and the summary unless that stands for turns that are not copied. The two know nothing
        of each other afterwards. ``UnknownConversationError`` if there is none to copy, ``ConflictError`` if the id is
        taken.
        """
        return await self._suspending.fork(conversation_id, new_conversation_id, turns)

    def export_conversation(self, conversation_id: str, *, raw_messages: bool = False) -> dict[str, Any]:
        """A conversation as JSON values: ``conversation_id``, ``turns``, ``summary``, ``total_tokens``, ``owner``.

        The turns have their texts, estimates and metadata, and with ``raw_messages=True`` their messages as well.
        ``UnknownConversationError`` if there is none of that id.
        """
        return run_without_loop(exported(self._blocking, conversation_id, raw_messages=raw_messages))

    async def async_export_conversation(self, conversation_id: str, *, raw_messages: bool = False) -> dict[str, Any]:
        """A conversation as JSON values: ``conversation_id``, ``turns``, ``summary``, ``total_tokens``, ``owner``.

        The turns have their texts, estimates and metadata, and with ``raw_messages=True`` their messages as well.
        ``UnknownConversationError`` if there is none of that id.
        """
        return await exported(self._suspending, conversation_id, raw_messages=raw_messages)

    def import_conversation(self, data: dict[str, Any], conversation_id: str | None = None) -> str:
        """Store what ``export_conversation`` returned, under its own id or another, and return the id.

        Importing the same again changes nothing; ``ConflictError`` if the id has other turns already. Data that is not
        an export is refused with ``InvalidEntryError``, which says where, before anything is stored.
        """
        return run_without_loop(import_into(self._blocking, data, conversation_id))

    async def async_import_conversation(self, data: dict[str, Any], conversation_id: str | None = None) -> str:
        """Store what ``export_conversation`` returned, under its own id or another, and return the id.

        Importing the same again changes nothing; ``ConflictError`` if the id has other turns already. Data that is not
        an export is refused with ``InvalidEntryError``, which says where, before anything is stored.
        """
        return await import_into(self._suspending, data, conversation_id)

    def clear(self, conversation_id: str) -> None:
        """Delete a conversation with all its turns and facts."""
        run_without_loop(self._blocking.clear(conversation_id))

    async def async_clear(self, conversation_id: str) -> None:
        """Delete a conversation with all its turns and facts."""
        await self._suspending.clear(conversation_id)

    def clear_all(self) -> None:
        """Delete every conversation of the store with its facts, of every owner: all of them or, if it fails, none.

        A turn that others append meanwhile goes with its conversation, or begins a new one. A ``FileStore`` or a store
        of your own clears one conversation after the other, and MongoDB does so in steps without transactions, or from
        10,000 conversations on: where that breaks off, each one is whole or gone, and another call goes on.
        """
        run_without_loop(self._blocking.clear_all())

    async def async_clear_all(self) -> None:
        """Delete every conversation of the store with its facts, of every owner: all of them or, if it fails, none.

        A turn that others append meanwhile goes with its conversation, or begins a new one. A ``FileStore`` or a store
        of your own clears one conversation after the other, and MongoDB does so in steps without transactions, or from
        10,000 conversations on: where that breaks off, each one is whole or gone, and another call goes on.
        """
        await self._suspending.clear_all()
