"""Messages that are out of bounds, feed by feed: the oldest ones, by the time when they were appended.

The feed itself stays, also without messages: it has the number that the next message follows, for subscribers, and the
owner. How many messages a feed has says nothing, and they have no tokens: ``keep_last`` and ``max_tokens``, which are
meant for conversations, leave all of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from firefly_memory.feeds.log import FEED_LOG, Feed
from firefly_memory.people import Bounds, Counts, Doomed
from firefly_memory.protocols import StoreView

PAGE = 200
_KIND = "feed-messages"


class FeedPruner:
    """A :class:`~firefly_memory.people.Pruner` of messages."""

    def __init__(self, view: StoreView) -> None:
        self._log = view.log(FEED_LOG)

    async def doomed(self, bounds: Bounds) -> AsyncIterator[Sequence[Doomed]]:
        if bounds.before is None:
            return
        after = ""
        while feeds := await self._page(bounds.owner, after):
            found = [(each, await self._last_before(each, bounds.before)) for each in feeds if each.messages]
            doomed = [
                Doomed(feed.location, last, {_KIND: last - feed.dropped}) for feed, last in found if last > feed.dropped
            ]
            if doomed:
                yield doomed
            after = feeds[-1].location

    async def delete(self, doomed: Sequence[Doomed]) -> Counts:
        """Messages never change, so those up to the number are the ones that were found."""
        deleted = 0
        for each in doomed:
            assert isinstance(each.state, int)
            deleted += await self._log.drop(each.name, each.state)
        return {_KIND: deleted} if deleted else {}

    async def _page(self, owner: str | None, after: str) -> Sequence[Feed]:
        return await (self._log.page(PAGE, after) if owner is None else self._log.of_owner(owner, PAGE, after))

    async def _last_before(self, feed: Feed, before: datetime) -> int:
        """The number of the last message before the first one that was not appended before an instant."""
        first = await self._log.first_since(feed.location, before)
        return feed.newest if first is None else first - 1
