"""Messages that are out of bounds, feed by feed: the oldest ones, by the time when they were appended.

A feed of which no message is left goes as well. How many messages a feed has says nothing, and they have no tokens:
``keep_last`` and ``max_tokens``, which are meant for conversations, leave all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import NamedTuple

from firefly_memory.codec import DAMAGE, damaged
from firefly_memory.feeds.log import FEED_LOG, Feed
from firefly_memory.feeds.people import counts_of
from firefly_memory.identifiers import original_name
from firefly_memory.people import Bounds, Counts, Doomed
from firefly_memory.protocols import StoreView

PAGE = 200


class _Until(NamedTuple):
    """How far a feed is out of bounds."""

    number: int
    is_whole: bool
    """Whether the feed goes as well, if it has no newer message by then."""


class FeedPruner:
    """A :class:`~firefly_memory.people.Pruner` of messages, and of feeds without any."""

    def __init__(self, view: StoreView) -> None:
        self._log = view.log(FEED_LOG)

    async def doomed(self, bounds: Bounds) -> AsyncIterator[Sequence[Doomed]]:
        if bounds.before is None:
            return
        after = ""
        while feeds := await self._page(bounds.owner, after):
            found = [(each, await self._until(each, bounds.before)) for each in feeds]
            doomed = [_doomed(feed, until) for feed, until in found if until.is_whole or until.number > feed.dropped]
            if doomed:
                yield doomed
            after = feeds[-1].location

    async def delete(self, doomed: Sequence[Doomed]) -> Counts:
        deleted = Counter[str]()
        for each in doomed:
            assert isinstance(each.state, _Until)
            messages = await self._log.delete(each.name, each.state.number) if each.state.is_whole else None
            if messages is None:
                deleted.update({"feed-messages": await self._log.drop(each.name, each.state.number)})
            else:
                deleted.update(counts_of(messages))
        return deleted

    async def _page(self, owner: str | None, after: str) -> Sequence[Feed]:
        return await (self._log.page(PAGE, after) if owner is None else self._log.of_owner(owner, PAGE, after))

    async def _until(self, feed: Feed, before: datetime) -> _Until:
        first = await self._log.first_since(feed.location, before)
        if first is not None:
            return _Until(first - 1, is_whole=False)
        # A feed without messages is as old as the newest one that it had.
        return _Until(feed.newest, is_whole=self._moment(feed) < before)

    def _moment(self, feed: Feed) -> datetime:
        try:
            return self._log.read_instant(feed.updated_at)
        except DAMAGE as exc:
            raise damaged("prune", f"feed {original_name(feed.location)!r}", exc) from exc


def _doomed(feed: Feed, until: _Until) -> Doomed:
    return Doomed(feed.location, until, counts_of(until.number - feed.dropped, feeds=int(until.is_whole)))
