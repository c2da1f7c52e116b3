"""What does several things on MongoDB at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from firefly_memory.databases.mongodb.clients import Connection

T = TypeVar("T")


class InTransaction(Protocol):
    """Does all of some work, which gets the session to use, or nothing; again if that may help, if not ``once``."""

    async def __call__(
        self, connection: Connection, work: Callable[[Any], Awaitable[T]], *, once: bool = False
    ) -> T: ...
