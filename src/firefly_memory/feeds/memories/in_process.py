"""The memories of agents that live in one process."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import partial

from firefly_memory.errors import ConfigurationError
from firefly_memory.feeds.constants import ASSISTANT_MESSAGE, USER_MESSAGE
from firefly_memory.feeds.items import Message, Messages
from firefly_memory.feeds.likely_keywords import answers_guesses
from firefly_memory.feeds.memories.base_memory import AgentMemory, checked_keys, checked_name
from firefly_memory.feeds.memories.budget import Block, Listed
from firefly_memory.feeds.memories.history_blocks import ReadBlock
from firefly_memory.feeds.memories.message_copies import copied_message
from firefly_memory.feeds.memories.shared_state import (
    FOR_ALL,
    SHARED,
    STATE_OF_THE_PROCESS,
    TURNS,
    Note,
    SharedStateStore,
    of_agent,
)
from firefly_memory.tokens.estimator import TokenEstimator
from firefly_memory.validation import checked_mapping


class InProcessMemory(AgentMemory):
    """What the memories of one process have in common. They keep any dict, also one that is not JSON."""

    def _as_given(self, message: Message) -> Message:
        return copied_message(message)

    def _listed(self, message: Message, agent_key: str | None, number: int) -> Listed:
        own = message.get("agent_key")
        return Listed(message, own if isinstance(own, str) else agent_key, number)


class InMemoryMemory(InProcessMemory):
    """The messages of one agent, which nobody else sees."""

    @answers_guesses
    def __init__(
        self, agent_key: str = "default", *, max_tokens: int | None = None, estimator: TokenEstimator | None = None
    ) -> None:
        super().__init__(agent_key, max_tokens, estimator)
        self._messages: list[Message] = []

    async def add(self, message: Message) -> None:
        """Add a message."""
        self._messages.append(copied_message(checked_mapping("message", message)))

    def _blocks(self) -> Sequence[ReadBlock]:
        return [self._newest]

    async def _newest(self, limit: int | None) -> Block:
        messages = self._messages[0 if limit is None else -limit :]
        return [self._listed(message, self.agent_key, place) for place, message in enumerate(messages)]


class _SharingMemory(InProcessMemory):
    """A memory on a shared state."""

    def __init__(
        self,
        namespace: str,
        agent_key: str,
        state: SharedStateStore | None,
        max_tokens: int | None,
        estimator: TokenEstimator | None,
    ) -> None:
        super().__init__(agent_key, max_tokens, estimator)
        self.namespace: str = checked_name("namespace", namespace)
        self.state: SharedStateStore = STATE_OF_THE_PROCESS if state is None else _checked_state(state)

    def _shown(self) -> Sequence[str]:
        return repr(self.namespace), repr(self.agent_key)

    async def add_global(self, message: Message) -> None:
        """Add a message that every agent of the namespace sees, also one that comes later."""
        await self.state.append_global_update(self.namespace, message)

    async def get_global_updates(self) -> Messages:
        """The messages for every agent of the namespace."""
        return await self.state.list_global_updates(self.namespace)

    def _block(self, *kinds: Hashable) -> ReadBlock:
        return partial(self._newest, kinds)

    async def _newest(self, kinds: Sequence[Hashable], limit: int | None) -> Block:
        notes = self.state.notes.newest(self.namespace, kinds, limit)
        return [self._listed(_as_in_histories(note), note.agent_key, note.number) for note in notes]


class SharedInMemoryMemory(_SharingMemory):
    """The memory of an agent that shares what it adds with all agents of a namespace.

    The history is what user and assistant said, what such agents added, and the messages for every agent. ``state`` is
    a state of your own in place of the process's.
    """

    @answers_guesses
    def __init__(
        self,
        namespace: str,
        agent_key: str,
        *,
        state: SharedStateStore | None = None,
        max_tokens: int | None = None,
        estimator: TokenEstimator | None = None,
    ) -> None:
        super().__init__(namespace, agent_key, state, max_tokens, estimator)

    async def add(self, message: Message) -> None:
        """Add a message that the agents of the namespace share."""
        await self.state.append_agent_msg(self.namespace, self.agent_key, message)

    def _blocks(self) -> Sequence[ReadBlock]:
        return [self._block(TURNS), self._block(SHARED), self._block(FOR_ALL)]


class HierarchicalSharedMemory(_SharingMemory):
    """The memory of a manager in a namespace.

    The history is its own notes, what its subordinates added, and the messages for every agent. Its own notes are seen
    by nobody else, except by a manager of whom it is a subordinate.
    """

    @answers_guesses
    def __init__(
        self,
        namespace: str,
        agent_key: str,
        subordinates: Iterable[str] = (),
        *,
        state: SharedStateStore | None = None,
        max_tokens: int | None = None,
        estimator: TokenEstimator | None = None,
    ) -> None:
        super().__init__(namespace, agent_key, state, max_tokens, estimator)
        self.subordinates: tuple[str, ...] = subordinates_of(self.agent_key, subordinates)

    async def add(self, message: Message) -> None:
        """Add a note of the manager's own. A message for every agent is seen by every agent."""
        await self.state.append_agent_msg(self.namespace, self.agent_key, message, private=True)

    def _blocks(self) -> Sequence[ReadBlock]:
        team = map(of_agent, self.subordinates)
        return [self._block(of_agent(self.agent_key)), self._block(*team), self._block(FOR_ALL)]

    def _shown(self) -> Sequence[str]:
        return *super()._shown(), repr([*self.subordinates])


def subordinates_of(agent_key: str, subordinates: Iterable[str]) -> tuple[str, ...]:
    """The keys of the subordinates of an agent, which is none of them."""
    return tuple(key for key in checked_keys("subordinates", subordinates) if key != agent_key)


def _checked_state(state: SharedStateStore) -> SharedStateStore:
    if not isinstance(state, SharedStateStore):
        raise ConfigurationError(f"state must be a SharedStateStore, not {type(state).__name__}")
    return state


def _as_in_histories(note: Note) -> Message:
    """A turn as a message; any other message as it is."""
    if TURNS not in note.kinds:
        return note.message
    turn = note.message
    kind = USER_MESSAGE if turn["role"] == "user" else ASSISTANT_MESSAGE
    return {"type": kind, "content": turn["content"], "timestamp": turn["timestamp"]}
