"""``BaseMessageStore``: where a team's messages are read, as the agents' memories need it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class BaseMessageStore(ABC):
    """The messages of agents, by location. Derive your own from this class, or take one of the library's.

    Each method returns the newest ``limit`` messages of its kind, oldest first: all of them for ``None``, none for 0.
    Methods may be coroutine functions. Those that are not are called in a worker thread, so that they may block. A
    class that has ``append(location, message)`` as well can be written to by memories.
    """

    @abstractmethod
    def get_conversation_messages(self, location: str, limit: int | None = None) -> Any:
        """The messages of the types ``user_message`` and ``assistant_message``."""

    @abstractmethod
    def get_agent_messages(self, location: str, agent_key: str, limit: int | None = None) -> Any:
        """The messages of one agent."""

    @abstractmethod
    def get_global_messages(self, location: str, limit: int | None = None) -> Any:
        """The messages for every agent."""

    @abstractmethod
    def get_team_messages(self, location: str, agent_keys: Sequence[str], limit: int | None = None) -> Any:
        """The messages of several agents; none for a team of nobody."""
