"""What every contender can do. Each is used as its own documentation shows, with its own defaults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

NEWEST_TURNS = 20
"""What a run reads where the library can read the newest messages alone: about as much as 4,000 tokens hold."""
BUDGET = 4_000
MESSAGES_OF_A_TURN = 4

Answer = Callable[[], Awaitable[str]]
"""A model's."""


@dataclass(frozen=True)
class Place:
    """A database for one contender alone: a file, and a database of a PostgreSQL server."""

    path: Path
    postgresql_url: str


class Contender(ABC):
    name: ClassVar[str]
    backend: ClassVar[str]
    package: ClassVar[str]
    """The distribution whose version is shown."""
    reads: ClassVar[str]
    """What a run reads of the conversation."""

    def __init__(self, place: Place) -> None:
        self.place = place

    @abstractmethod
    async def open(self, *, create: bool = True) -> None:
        """``create`` is false in a process that may not create tables, where the library has such an option."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def load(self, conversation: str) -> int:
        """Read what the next run needs; how many messages that is."""

    @abstractmethod
    async def turn(self, conversation: str) -> None:
        """What the store does in a run: read what the run needs, then add a prompt, a call, its result, an answer."""

    @abstractmethod
    async def fill(self, conversation: str, turns: int) -> None:
        """Make a conversation of so many turns, by whichever way is quickest."""

    @abstractmethod
    async def run(self, conversation: str, answer: Answer) -> None:
        """A run of the library's own agent, whose model calls a tool and then says what ``answer`` returns."""

    @abstractmethod
    async def stored(self, conversation: str) -> list[str]:
        """All that is stored: ``prompt``, ``call``, ``result`` or ``answer`` for each message."""

    async def turn_without_store(self, conversation: str) -> None:
        """The part of ``turn`` that is no work of the store, if there is one."""
        raise NotImplementedError

    async def resume(self, conversation: str) -> bool:
        """Go on with a run that was killed; false if the library has no way to."""
        return False


def has_other_work(contender: Contender) -> bool:
    return type(contender).turn_without_store is not Contender.turn_without_store
