"""Dialogues in SQL: the hooks, each of which runs one operation through the executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ParamSpec, TypeVar

from firefly_memory.agent_history.log import Dialogue, DialogueEntry
from firefly_memory.agent_history.sql import operations
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.errors import sqlstate
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.databases.sql.operation import Operation
from firefly_memory.errors import DatabaseStoreError

P = ParamSpec("P")
T = TypeVar("T")

_ATTEMPTS = 20  # each that fails is another writer's success


class SQLDialogueLog:
    """A :class:`~firefly_memory.agent_history.log.DialogueLog` over an executor."""

    def __init__(self, executor: Executor, _: type[SQLDialect]) -> None:
        self._run = executor.run

    async def record(self, conversation_id: str) -> Dialogue | None:
        return await self._run(operations.read_dialogue, conversation_id)

    async def records(self, scope: str | None, limit: int | None) -> Sequence[Dialogue]:
        return await self._run(operations.read_dialogues, scope, limit)

    async def page(self, limit: int, after: str) -> Sequence[Dialogue]:
        return await self._run(operations.read_dialogue_page, limit, after)

    async def write(self, dialogue: Dialogue, entries: Sequence[DialogueEntry], expected: str | None) -> bool:
        return await self._uncollided(operations.write_dialogue, dialogue, entries, expected)

    async def delete(self, conversation_id: str, expected: str) -> bool:
        return await self._uncollided(operations.delete_dialogue, conversation_id, expected)

    async def history(self, head_id: str, limit: int | None) -> Sequence[DialogueEntry]:
        return await self._run(operations.read_history, head_id, limit)

    async def entries(self, entry_ids: Sequence[str]) -> Sequence[DialogueEntry]:
        return await self._run(operations.read_entries, entry_ids)

    async def shared(self, entry_ids: Sequence[str]) -> Sequence[str]:
        return await self._run(operations.shared_entries, entry_ids)

    async def go_on_deleting(self) -> bool:
        return False  # a deletion is one transaction

    async def _uncollided(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run it anew where PostgreSQL gave it up for another transaction: two deletions of dialogues that share
        branches may wait for each other, and stricter isolation levels refuse instead of waiting."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._run(operation, *args, **kwargs)
            except DatabaseStoreError as error:
                if not isinstance(error.__cause__, Exception) or (sqlstate(error.__cause__) or "")[:2] != "40":
                    raise
        return await self._run(operation, *args, **kwargs)
