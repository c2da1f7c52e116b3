"""``BaseMemory``: what an agent remembers, and what the library's own memories have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from firefly_memory.errors import ConfigurationError, InvalidEntryError
from firefly_memory.feeds.items import Message, Messages
from firefly_memory.feeds.memories.budget import Budget
from firefly_memory.feeds.memories.history_blocks import ReadBlock, read_history
from firefly_memory.identifiers import original_name, stored_name
from firefly_memory.reprs import even_half_built
from firefly_memory.tokens.estimator import TokenEstimator
from firefly_memory.validation import at_least


class BaseMemory(ABC):
    """What one agent sees of the messages of its team, and where its own messages go.

    A message is any dict. Derive your own memory from this class, or take one of the library's.
    """

    agent_key: str | None = None
    """The key of the agent, if the memory knows it."""

    @abstractmethod
    async def add(self, message: Message) -> None:
        """Add a message."""

    async def add_many(self, messages: Iterable[Message]) -> None:
        """Add messages, in their order: one after the other, unless the memory can add all of them or none."""
        for message in messages:
            await self.add(message)

    @abstractmethod
    async def get_history(self) -> Messages:
        """The messages that the agent sees."""

    @property
    def writable(self) -> bool:
        """Whether messages can be added."""
        return True


class AgentMemory(BaseMemory):
    """What the library's memories have in common: the key of the agent, and the bound of the history.

    A history is made of blocks, each in the order of arrival, and has each message once. With ``max_tokens`` it has at
    most so many tokens, which ``estimator`` counts: see :class:`~firefly_memory.feeds.memories.budget.Budget`. Any
    number of tasks, event loops and threads may use one memory at once. What a caller changes afterwards, in a message
    that was added or listed, changes nothing in the memory.
    """

    agent_key: str

    def __init__(self, agent_key: str, max_tokens: int | None, estimator: TokenEstimator | None) -> None:
        self.agent_key = checked_name("agent_key", agent_key)
        self.max_tokens: int | None = None if max_tokens is None else at_least(0, "max_tokens", max_tokens)
        self._estimator = TokenEstimator() if estimator is None else checked_estimator(estimator)

    @even_half_built
    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown())})"

    async def get_history(self) -> Messages:
        """The messages that the agent sees, at most ``max_tokens`` of them if there is a bound, block by block."""
        budget = None if self.max_tokens is None else Budget(self.max_tokens, self._estimator)
        return [self._as_given(listed.message) for listed in await read_history(self._blocks(), budget)]

    @abstractmethod
    def _blocks(self) -> Sequence[ReadBlock]:
        """The blocks of the history, in their order."""

    def _as_given(self, message: Message) -> Message:
        """A listed message as the caller gets it."""
        return message

    def _shown(self) -> Sequence[str]:
        """The arguments that the ``repr`` shows."""
        return (repr(self.agent_key),)


def checked_estimator(estimator: TokenEstimator) -> TokenEstimator:
    if not isinstance(estimator, TokenEstimator):
        raise ConfigurationError(f"estimator must be a TokenEstimator, not {type(estimator).__name__}")
    return estimator


def checked_name(what: str, name: str) -> str:
    """A key, a location or a namespace; ``InvalidEntryError`` for what is none."""
    return original_name(stored_name(what, name))


def checked_keys(what: str, keys: Iterable[str]) -> tuple[str, ...]:
    """The keys of several agents, each once; ``InvalidEntryError`` for what are none."""
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise InvalidEntryError(what, "must be several keys, in a list")
    return tuple(dict.fromkeys(checked_name(f"{what}[{place}]", key) for place, key in enumerate(keys)))
