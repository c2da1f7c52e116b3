"""Agent history that is out of bounds: the conversations of pydantic-ai, whose owners are their scopes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from heapq import heappush, heappushpop
from typing import Any

from firefly_memory.agent_history.log import AGENT_HISTORY_LOG, HistoryRecord
from firefly_memory.looking import DirectOf
from firefly_memory.people import Bounds, Counts, Doomed
from firefly_memory.protocols import StoreView

PAGE = 200

_Place = tuple[datetime, str]


class HistoryPruner:
    """A :class:`~firefly_memory.people.Pruner` of agent history. It has no tokens, so ``max_tokens`` leaves all of it.

    Records are listed by their ids. So to keep the newest of each owner, all are read twice: first for the places of
    the ``keep_last`` newest ones, which is all that is remembered of an owner.
    """

    def __init__(self, view: StoreView) -> None:
        self._log = view.log(AGENT_HISTORY_LOG)
        self._by_id: Any = view.log(DirectOf("agent_history", "agent-history"))

    async def doomed(self, bounds: Bounds) -> AsyncIterator[Sequence[Doomed]]:
        if bounds.before is None and bounds.keep_last is None:
            return
        oldest_kept = {} if bounds.keep_last is None else await self._oldest_kept(bounds, bounds.keep_last)
        async for page in self._pages(bounds):
            doomed = [_doomed(record) for record in page if _is_out(record, bounds, oldest_kept)]
            if doomed:
                yield doomed

    async def delete(self, doomed: Sequence[Doomed]) -> Counts:
        deleted: Counter[str] = Counter()
        for each in doomed:
            if await self._log.delete(each.name, str(each.state)):
                deleted.update(each.counts)
        return deleted

    async def _oldest_kept(self, bounds: Bounds, keep_last: int) -> dict[str | None, _Place]:
        """By owner, the place of the oldest record that stays."""
        newest: defaultdict[str | None, list[_Place]] = defaultdict(list)
        async for page in self._pages(bounds):
            for record in page:
                kept = newest[record.scope]
                if len(kept) < keep_last:
                    heappush(kept, _place(record))
                else:
                    heappushpop(kept, _place(record))
        return {owner: kept[0] for owner, kept in newest.items()}

    async def _pages(self, bounds: Bounds) -> AsyncIterator[Sequence[HistoryRecord]]:
        after: str | None = None
        while True:
            page: Sequence[HistoryRecord] = await self._by_id.page(PAGE, after)
            yield [record for record in page if bounds.owner in (None, record.scope)]
            if len(page) < PAGE:
                return
            after = page[-1].conversation_id


def _is_out(record: HistoryRecord, bounds: Bounds, oldest_kept: dict[str | None, _Place]) -> bool:
    too_old = bounds.before is not None and record.updated_at < bounds.before
    place = _place(record)
    return too_old or place < oldest_kept.get(record.scope, place)


def _place(record: HistoryRecord) -> _Place:
    return record.updated_at, record.conversation_id


def _doomed(record: HistoryRecord) -> Doomed:
    return Doomed(record.conversation_id, record.revision, {"agent-history": 1})
