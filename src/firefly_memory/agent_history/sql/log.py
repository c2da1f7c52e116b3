"""Agent history in SQL: each hook is an operation, run by the executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ParamSpec, TypeVar

from firefly_memory.agent_history.log import HistoryEntry, HistoryRecord
from firefly_memory.agent_history.sql import operations
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.errors import sqlstate
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.databases.sql.operation import Operation
from firefly_memory.errors import DatabaseStoreError

P = ParamSpec("P")
T = TypeVar("T")

_ATTEMPTS = 20  # each failed attempt means that another writer succeeded


class SQLHistoryLog:
    """A :class:`~firefly_memory.agent_history.log.HistoryLog` over an executor."""

    def __init__(self, executor: Executor, _: type[SQLDialect]) -> None:
        self._run = executor.run
        self.record = executor.method(operations.read_record)
        self.records = executor.method(operations.read_records)
        self.page = executor.method(operations.read_page)
        self.history = executor.method(operations.read_history)
        self.entries = executor.method(operations.read_entries)
        self.shared = executor.method(operations.read_shared)

    async def write(self, record: HistoryRecord, entries: Sequence[HistoryEntry], expected: str | None) -> bool:
        return await self._uncollided(operations.write_record, record, entries, expected)

    async def delete(self, conversation_id: str, expected: str) -> bool:
        return await self._uncollided(operations.delete_record, conversation_id, expected)

    async def go_on_deleting(self) -> bool:
        return False  # a deletion is one transaction

    async def _uncollided(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``operation`` again if PostgreSQL aborted it in favour of another transaction. Two deletions of records
        that share branches may deadlock, and stricter isolation levels abort instead of waiting."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._run(operation, *args, **kwargs)
            except DatabaseStoreError as error:
                if not isinstance(error.__cause__, Exception) or (sqlstate(error.__cause__) or "")[:2] != "40":
                    raise
        return await self._run(operation, *args, **kwargs)
