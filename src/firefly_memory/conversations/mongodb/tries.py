"""Pauses between the tries of a write."""

from __future__ import annotations

import random
import time

from firefly_memory.conversations.mongodb.damage import check_findable
from firefly_memory.conversations.mongodb.documents import CONVERSATIONS
from firefly_memory.databases.mongodb.clients import Connection
from firefly_memory.errors import StoreTimeoutError
from firefly_memory.identifiers import original_name

_LONGEST_PAUSE = 0.02  # seconds


class Tries:
    """Pauses for writers who are in each other's way, until the time is up."""

    def __init__(self, operation: str, conversation_id: str, timeout: float) -> None:
        self._operation = operation
        self._conversation_id = conversation_id
        self._deadline = time.monotonic() + timeout
        self._longest = 0.001

    async def pause(self, connection: Connection) -> None:
        if time.monotonic() >= self._deadline:
            others = f"other writers of conversation {original_name(self._conversation_id)!r} were always faster"
            raise StoreTimeoutError(self._operation, others, retryable=True)
        if self._longest == _LONGEST_PAUSE:  # it is not others, perhaps
            there = connection[CONVERSATIONS].find_one({"_id": self._conversation_id}, {"conversation_id": 1})
            check_findable(await connection.result_of(there))
        await connection.pause(random.uniform(0, self._longest))  # noqa: S311 - not a secret
        self._longest = min(2 * self._longest, _LONGEST_PAUSE)
