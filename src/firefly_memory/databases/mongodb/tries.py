"""Pauses between the tries of a write."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable

from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.errors import StoreTimeoutError

_LONGEST_PAUSE = 0.02  # seconds


class Tries:
    """Pauses for writers who are in each other's way, until the time is up."""

    def __init__(
        self, operation: str, target: str, timeout: float, check: Callable[[Connection], Awaitable[None]]
    ) -> None:
        """``target`` is what they write to. ``check`` raises if something else than other writers is in the way."""
        self._operation = operation
        self._target = target
        self._deadline = time.monotonic() + timeout
        self._check = check
        self._longest = 0.001

    async def pause(self, connection: Connection) -> None:
        if time.monotonic() >= self._deadline:
            others = f"other writers of {self._target} were always faster"
            raise StoreTimeoutError(self._operation, others, retryable=True)
        if self._longest == _LONGEST_PAUSE:
            await self._check(connection)
        await connection.pause(random.uniform(0, self._longest))  # noqa: S311 - not a secret
        self._longest = min(2 * self._longest, _LONGEST_PAUSE)
