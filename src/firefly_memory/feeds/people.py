"""The feeds of a person, to be erased."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence

from firefly_memory.feeds.log import FEED_LOG, feed_identity
from firefly_memory.people import Counts, Owned
from firefly_memory.protocols import StoreView

_PAGE = 200


def counts_of(messages: int, feeds: int = 1) -> Counts:
    """The rows of feeds, by the kinds of the facet's resources."""
    return {"feeds": feeds, "feed-messages": messages}


class FeedEraser:
    """An :class:`~firefly_memory.people.Eraser` of feeds with their messages, in any store."""

    def __init__(self, view: StoreView) -> None:
        self._log = view.log(FEED_LOG)

    async def owned(self, owner: str) -> AsyncIterator[Sequence[Owned]]:
        after = ""
        while feeds := await self._log.of_owner(owner, _PAGE, after):
            yield [Owned(each.location, (feed_identity(each.location),), counts_of(each.messages)) for each in feeds]
            after = feeds[-1].location

    async def delete(self, owned: Sequence[Owned]) -> Counts:
        deleted = Counter[str]()
        for each in owned:
            messages = await self._log.delete(each.name)  # with those that were appended since it was found
            if messages is not None:
                deleted.update(counts_of(messages))
        return deleted
