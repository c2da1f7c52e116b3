"""Tombstones in SQL: each method is an operation, run by the executor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.databases.sql.find_text import find_text
from firefly_memory.tombstones.log import Identity
from firefly_memory.tombstones.sql import operations


class SQLTombstoneLog:
    """A :class:`~firefly_memory.tombstones.log.TombstoneLog` over an executor."""

    def __init__(self, executor: Executor, _: type[SQLDialect]) -> None:
        self._run = executor.run
        self.are_there = executor.method(operations.are_refused)
        self.remove = executor.method(operations.remove_tombstones)
        self.find_text = executor.method(find_text)
        self.scrub = executor.method(operations.scrub)

    async def add(self, identities: Sequence[Identity], owner: str, now: datetime) -> None:
        await self._run(operations.add_tombstones, identities, owner, now)
        await self._run(operations.wait_for_writers)  # in a transaction of its own: what is added is committed by now
