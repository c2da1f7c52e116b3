"""What the callers of one event loop write at the same time, put together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ParamSpec, Protocol, TypeVar

from firefly_memory.concurrency.group_commit import GroupCommit, Writes
from firefly_memory.conversations.log import Appended, Draft
from firefly_memory.conversations.sql import operations as conversation_operations
from firefly_memory.databases.sql.operation import Operation
from firefly_memory.entries.record import Record
from firefly_memory.entries.saves import Save, Saves
from firefly_memory.entries.sql import operations

P = ParamSpec("P")
T = TypeVar("T")


class _Runs(Protocol):
    async def run(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...


class Groups:
    """The groups of saves, and those of turns."""

    def __init__(self, runner: _Runs) -> None:
        async def save_one(record: Record, now: datetime) -> None:
            await runner.run(operations.save, record, now)

        async def settle(record: Record, now: datetime) -> None:
            await runner.run(operations.settle_save, record, now)

        async def save_group(records: list[Record], now: datetime) -> list[Record]:
            return await runner.run(operations.save_group, records, now)

        self.saves: GroupCommit[Save, None] = GroupCommit(Saves(save_one, settle, save_group, operations.not_the_owner))
        self.appends: GroupCommit[Draft, Appended | None] = GroupCommit(_Appends(runner))


class _Appends(Writes[Draft, Appended | None]):
    """The writes of turns without a condition."""

    retryable = False

    def __init__(self, runner: _Runs) -> None:
        self._run = runner.run

    def key(self, item: Draft) -> str:
        return item[1].append_id

    def size(self, item: Draft) -> int:
        turn = item[1]
        return len(turn.user_prompt) + len(turn.assistant_response) + len(turn.messages or "")

    async def one(self, item: Draft) -> Appended | None:
        return await self._run(conversation_operations.append_turn, *item, None)

    async def again(self, item: Draft) -> Appended | None:
        return await self._run(conversation_operations.settle_append, *item, None)

    settle = again

    async def several(self, items: Sequence[Draft]) -> Sequence[Appended | Exception | None]:
        return await self._run(conversation_operations.append_group, items)
