"""The memories of agents whose messages are in a message store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from firefly_memory.errors import NotSupportedError
from firefly_memory.feeds.base_store import BaseMessageStore
from firefly_memory.feeds.items import Message, Messages
from firefly_memory.feeds.likely_keywords import answers_guesses
from firefly_memory.feeds.memories.base_memory import AgentMemory, checked_name
from firefly_memory.feeds.memories.budget import Block, Listed
from firefly_memory.feeds.memories.called_store import CalledStore, Kind
from firefly_memory.feeds.memories.history_blocks import ReadBlock
from firefly_memory.feeds.memories.in_process import subordinates_of
from firefly_memory.feeds.memories.message_copies import copied_message
from firefly_memory.tokens.estimator import TokenEstimator
from firefly_memory.validation import checked_mapping


class StoreMemory(AgentMemory):
    """What the memories on a message store have in common.

    ``message_store`` is one of the library's, or any object with the methods of
    :class:`~firefly_memory.feeds.BaseMessageStore`. Coroutine functions are awaited. Other methods are called in a
    worker thread, one after the other for each store, so that they may block, and need not be safe for threads. An
    error of the store is the caller's. ``owner`` is the canonical id of the person whose data the location has. On one
    of the library's stores a location with another owner, or with none, is not read: ``ConflictError``.
    """

    def __init__(
        self,
        message_store: BaseMessageStore,
        location: str,
        agent_key: str,
        owner: str | None,
        max_tokens: int | None,
        estimator: TokenEstimator | None,
    ) -> None:
        super().__init__(agent_key, max_tokens, estimator)
        self._store = CalledStore(message_store)
        self.message_store: BaseMessageStore = message_store
        self.location: str = checked_name("location", location)
        self.owner: str | None = None if owner is None else checked_name("owner", owner)

    @property
    def writable(self) -> bool:
        """Whether messages can be added: whether the message store has ``append(location, message)``."""
        return self._store.writable

    async def add(self, message: Message) -> None:
        """Add a message, with this agent's key if it has none."""
        await self._append([self._own(message, "message")])

    async def add_many(self, messages: Iterable[Message]) -> None:
        """Add messages in their order, with this agent's key where they have none. The library's message stores add all
        or none, except for MongoDB, where each is added on its own."""
        await self._append([self._own(message, f"messages[{place}]") for place, message in enumerate(messages)])

    def _own(self, message: Message, what: str) -> Message:
        own = copied_message(checked_mapping(what, message), what)
        if own.get("agent_key") is None:
            own["agent_key"] = self.agent_key
        return own

    async def _append(self, messages: Sequence[Message]) -> None:
        if not self.writable:
            name = type(self.message_store).__name__
            raise NotSupportedError(f"the message store {name} can only be read: it has no append(location, message)")
        await self._store.append(self.location, messages, self.owner)

    async def get_history(self) -> Messages:
        """The messages that the agent sees, at most ``max_tokens`` of them if there is a bound, block by block."""
        if self.owner is not None:
            await self._store.check_owner(self.location, self.owner)
        return await super().get_history()

    def _block(self, kind: Kind, *arguments: Any) -> ReadBlock:
        async def newest(limit: int | None) -> Block:
            messages = await self._store.newest(kind, limit, self.location, *arguments)
            return [Listed(message, _key_of(message)) for message in messages]

        return newest

    def _shown(self) -> Sequence[str]:
        return type(self.message_store).__name__, repr(self.location), repr(self.agent_key)


class MessageStoreMemory(StoreMemory):
    """The memory of a worker or an orchestrator: the conversation, its own messages, and those for every agent."""

    @answers_guesses
    def __init__(
        self,
        message_store: BaseMessageStore,
        location: str,
        agent_key: str,
        *,
        owner: str | None = None,
        max_tokens: int | None = None,
        estimator: TokenEstimator | None = None,
    ) -> None:
        super().__init__(message_store, location, agent_key, owner, max_tokens, estimator)

    def _blocks(self) -> Sequence[ReadBlock]:
        return [self._block("conversation"), self._block("agent", self.agent_key), self._block("global")]


class HierarchicalMessageStoreMemory(StoreMemory):
    """The memory of a manager: its own messages, those of its subordinates, and those for every agent."""

    @answers_guesses
    def __init__(
        self,
        message_store: BaseMessageStore,
        location: str,
        agent_key: str,
        subordinates: Iterable[str] = (),
        *,
        owner: str | None = None,
        max_tokens: int | None = None,
        estimator: TokenEstimator | None = None,
    ) -> None:
        super().__init__(message_store, location, agent_key, owner, max_tokens, estimator)
        self.subordinates: tuple[str, ...] = subordinates_of(self.agent_key, subordinates)

    def _blocks(self) -> Sequence[ReadBlock]:
        team = [self._block("team", [*self.subordinates])] if self.subordinates else []
        return [self._block("agent", self.agent_key), *team, self._block("global")]

    def _shown(self) -> Sequence[str]:
        return *super()._shown(), repr([*self.subordinates])


def _key_of(message: Message) -> str | None:
    key = message.get("agent_key")
    return key if isinstance(key, str) else None
