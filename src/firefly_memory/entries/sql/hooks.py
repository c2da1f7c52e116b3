"""The hooks of a store, in SQL: each runs one operation through the executor."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.entries.record import Position, Record, Row
from firefly_memory.entries.sql import operations
from firefly_memory.facets import FacetLogs, Purged
from firefly_memory.protocols import Capability

Save = Callable[[Record, datetime], Coroutine[Any, Any, None]]


class SQLBackend:
    """A :class:`~firefly_memory.entries.hooks.Backend` over an executor."""

    def __init__(self, executor: Executor, dialect: type[SQLDialect], capabilities: frozenset[Capability]) -> None:
        self.form = dialect.form
        self.read_instant = dialect.read_instant
        self.capabilities = capabilities
        self.log = FacetLogs("sql", lambda log: log(executor, dialect))
        self.initialize = executor.initialize
        self.close = executor.close
        self._run = executor.run
        self.save: Save = partial(executor.run, operations.save)  # type: ignore[call-arg] # mypy looks into the partial

    async def save_if(self, record: Record, expected: Any, now: datetime) -> bool:
        return await self._run(operations.save_if, record, expected, now)

    async def save_many(self, records: list[Record], now: datetime) -> None:
        await self._run(operations.save_many, records, now)

    async def scan(self, namespace: str, limit: int | None, after: Position | None, now: datetime) -> Sequence[Row]:
        return await self._run(operations.load, namespace, limit, after, now)

    async def scan_several(self, namespaces: list[str], now: datetime) -> Sequence[Row]:
        return await self._run(operations.load_several, namespaces, now)

    async def newest(self, namespace: str, key: str, now: datetime) -> Row | None:
        return await self._run(operations.load_by_key, namespace, key, now)

    async def delete(self, namespace: str, entry_id: str, now: datetime) -> None:
        await self._run(operations.delete, namespace, entry_id, now)

    async def delete_many(self, namespace: str, entry_ids: list[str], now: datetime) -> int:
        return await self._run(operations.delete_many, namespace, entry_ids, now)

    async def clear(self, namespace: str) -> None:
        await self._run(operations.clear, namespace)

    async def count(self, namespace: str, now: datetime) -> int:
        return await self._run(operations.count, namespace, now)

    async def namespaces(self, prefix: str, limit: int, after: str, now: datetime) -> list[str]:
        return await self._run(operations.namespaces, prefix, limit, after, now)

    async def purge(self, limit: int, now: datetime) -> Purged:
        return await self._run(operations.cleanup_expired, limit, now)
