"""Agent history in SQL: each hook is an operation, run by the executor."""

from __future__ import annotations

from collections.abc import Sequence

from firefly_memory.agent_history.log import HistoryEntry, HistoryRecord
from firefly_memory.agent_history.sql import operations
from firefly_memory.databases.sql.collisions import again_after_collision
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor


class SQLHistoryLog:
    """A :class:`~firefly_memory.agent_history.log.HistoryLog` over an executor."""

    def __init__(self, executor: Executor, _: type[SQLDialect]) -> None:
        self.record = executor.method(operations.read_record)
        self.records = executor.method(operations.read_records)
        self.page = executor.method(operations.read_page)
        self.history = executor.method(operations.read_history)
        self.entries = executor.method(operations.read_entries)
        self.shared = executor.method(operations.read_shared)
        # Two deletions of records that share branches may deadlock.
        self._write = again_after_collision(executor.method(operations.write_record))
        self._delete = again_after_collision(executor.method(operations.delete_record))

    async def write(self, record: HistoryRecord, entries: Sequence[HistoryEntry], expected: str | None) -> bool:
        return await self._write(record, entries, expected)

    async def delete(self, conversation_id: str, expected: str) -> bool:
        return await self._delete(conversation_id, expected)

    async def go_on_deleting(self) -> bool:
        return False  # a deletion is one transaction
