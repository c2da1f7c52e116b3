"""``subscribe()``: the messages of a location as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from firefly_memory.errors import ConflictError
from firefly_memory.feeds.flows import FeedFlows
from firefly_memory.feeds.items import FeedItem
from firefly_memory.feeds.log import Feed
from firefly_memory.feeds.wakeups import waiting_for
from firefly_memory.identifiers import stored_name
from firefly_memory.validation import above_zero, checked_whole_number

Subscription = AsyncGenerator[FeedItem, None]

_AT_ONCE = 200
"""The number of messages that one look reads at most."""

_LOOKS = 10
"""After so many looks that found nothing, the head of the feed is read again: it may have been deleted."""

_RESTS = 10
"""The pauses between looks are so many times longer while notifications arrive. They are short again after a look has
found a message without a notification, because some writers do not notify."""


def subscription(flows: FeedFlows, location: str, after: int | None, every: float) -> Subscription:
    """The items after a number, read by number, so that none is skipped or repeated. The arguments are checked here,
    and not when the first item is asked for."""
    stored_name("location", location)
    number = None if after is None else checked_whole_number("after", after)
    return _items(flows, location, number, above_zero("every", every))


async def _items(flows: FeedFlows, location: str, after: int | None, every: float) -> Subscription:
    with waiting_for(location) as written:
        async with flows.listening(location, written.set) as notifications_arrive:
            feed = await flows.feed(location)
            number = after if after is not None else 0 if feed is None else feed.newest
            was_told = all_tell = True
            idle = 0
            while True:
                written.clear()  # before the look: what is written after it sets it again
                items = await flows.items(location, number, _AT_ONCE)
                all_tell = all_tell and (was_told or written.is_set() or not items)
                # The first items after a pause may be of another feed.
                looks_at_head = idle > 0 if items else idle % _LOOKS == 0
                if looks_at_head:
                    feed = await _same_feed(flows, location, number, feed)
                for item in items:
                    number = item.number
                    yield item
                was_told = True
                idle = 0 if items else idle + 1
                if not items:
                    rests = _RESTS if all_tell and notifications_arrive() else 1
                    was_told = await _is_set(written, every * rests)


async def _is_set(event: asyncio.Event, within: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()


async def _same_feed(flows: FeedFlows, location: str, number: int, before: Feed | None) -> Feed | None:
    """The feed as it is now; ``ConflictError`` if it was deleted since it was seen, and perhaps begun again."""
    feed = await flows.feed(location)
    newest = 0 if feed is None else feed.newest
    begun_again = feed is not None and before is not None and feed.created_at != before.created_at
    if number and (newest < number or begun_again):
        raise ConflictError(
            f"feed {location!r} was deleted after message {number} was seen, and its numbers begin anew; it ends with "
            f"message {newest}; subscribe again with after=0"
        )
    return feed
