"""Saves of records, as writes that may be put together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from firefly_memory.concurrency.group_commit import Writes
from firefly_memory.entries.record import Record

Save = tuple[Record, datetime]
"""A record, and what its caller takes for now."""


class Saves(Writes[Save, None]):
    """The writes of records: ``settle`` is a save after a lost answer, ``save_group`` returns those it refused, and
    ``refusal`` makes the error for one."""

    retryable = True

    def __init__(
        self,
        save: Callable[[Record, datetime], Awaitable[None]],
        settle: Callable[[Record, datetime], Awaitable[None]],
        save_group: Callable[[list[Record], datetime], Awaitable[list[Record]]],
        refusal: Callable[[Record], Exception],
    ) -> None:
        self._save = save
        self._settle = settle
        self._save_group = save_group
        self._refusal = refusal

    def key(self, item: Save) -> str:
        return item[0].entry_id

    def size(self, item: Save) -> int:
        content = item[0].content
        return len(content) if isinstance(content, str) else 0  # PyMongo cuts what it sends into pieces itself

    async def one(self, item: Save) -> None:
        await self._save(*item)

    async def again(self, item: Save) -> None:
        await self._save(*item)  # saving twice is saving once

    async def settle(self, item: Save) -> None:
        await self._settle(*item)

    async def several(self, items: Sequence[Save]) -> list[Exception | None]:
        refused = await self._save_group([record for record, _ in items], max(now for _, now in items))
        ids = {record.entry_id for record in refused}
        return [self._refusal(record) if record.entry_id in ids else None for record, _ in items]
