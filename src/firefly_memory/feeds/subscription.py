"""``subscribe()``: the messages of a location as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from firefly_memory.errors import ConflictError
from firefly_memory.feeds.flows import FeedFlows
from firefly_memory.feeds.items import FeedItem
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
            number = await _newest(flows, location) if after is None else after
            was_told = all_tell = True
            looks = 0
            while True:
                written.clear()  # before the look: what is written after it sets it again
                items = await flows.items(location, number, _AT_ONCE)
                all_tell = all_tell and (was_told or written.is_set() or not items)
                for item in items:
                    number = item.number
                    yield item
                was_told = True
                looks = 0 if items else looks + 1
                if not items:
                    if looks % _LOOKS == 1:
                        await _check(flows, location, number)
                    rests = _RESTS if all_tell and notifications_arrive() else 1
                    was_told = await _is_set(written, every * rests)


async def _is_set(event: asyncio.Event, within: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()


async def _newest(flows: FeedFlows, location: str) -> int:
    feed = await flows.feed(location)
    return 0 if feed is None else feed.newest


async def _check(flows: FeedFlows, location: str, number: int) -> None:
    """``ConflictError`` if the feed does not reach to ``number``: it was deleted, and perhaps begun again."""
    if number and (newest := await _newest(flows, location)) < number:
        raise ConflictError(
            f"feed {location!r} ends with message {newest}, before message {number} that was seen: it was deleted, and "
            "its numbers began anew; subscribe again with after=0"
        )
