"""Chunks that are out of bounds: those of people, by the time when they were added first.

What belongs to nobody, such as a handbook, is no history and never goes. How many chunks a person has says nothing
either, and they have no tokens: ``keep_last`` and ``max_tokens``, which are meant for conversations, leave all of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from firefly_memory.knowledge.log import CHUNKS, KNOWLEDGE_LOG, ChunkRow
from firefly_memory.people import Bounds, Counts, Doomed
from firefly_memory.protocols import StoreView

PAGE = 200


class KnowledgePruner:
    """A :class:`~firefly_memory.people.Pruner` of chunks."""

    def __init__(self, view: StoreView) -> None:
        self._log = view.log(KNOWLEDGE_LOG)

    async def doomed(self, bounds: Bounds) -> AsyncIterator[Sequence[Doomed]]:
        if bounds.before is None:
            return
        async for page in self._pages(bounds.owner):
            doomed = [_doomed(row) for row in page if _is_out(row, bounds.before)]
            if doomed:
                yield doomed

    async def delete(self, doomed: Sequence[Doomed]) -> Counts:
        """A chunk never changes. One that was deleted and added again meanwhile is another one, and stays."""
        there = {row.id: row.created_at for row in await self._log.read([each.name for each in doomed])}
        unchanged = [each.name for each in doomed if there.get(each.name) == each.state]
        return {CHUNKS.kind: await self._log.delete(unchanged)} if unchanged else {}

    async def _pages(self, owner: str | None) -> AsyncIterator[Sequence[ChunkRow]]:
        after = ""
        if owner is None:
            while rows := await self._log.page(PAGE, after):
                yield rows
                after = rows[-1].id
        else:
            while ids := await self._log.of_owner(owner, PAGE, after):
                yield await self._log.read(ids)
                after = ids[-1]


def _is_out(row: ChunkRow, before: datetime) -> bool:
    return row.owner is not None and row.created_at < before


def _doomed(row: ChunkRow) -> Doomed:
    return Doomed(row.id, row.created_at, {CHUNKS.kind: 1})
