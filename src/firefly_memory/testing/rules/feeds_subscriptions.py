"""F10, feeds: subscribers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Any

from firefly_memory.errors import ConfigurationError, ConflictError, InvalidEntryError
from firefly_memory.feeds.items import FeedItem
from firefly_memory.feeds.log import FEED_LOG
from firefly_memory.identifiers import stored_name
from firefly_memory.testing.checks import Mode, Subject, check
from firefly_memory.testing.rules.concurrency import at_once
from firefly_memory.testing.rules.feed_stores import Feeds, feeds_in, said

_AT_MOST = 60.0


async def _in_a_loop(subject: Subject, body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Subscribers need an event loop. Writers of the blocking mode block it meanwhile."""

    async def within_time() -> None:
        async with asyncio.timeout(_AT_MOST):
            await body()

    if subject.mode is Mode.BLOCKING:
        asyncio.run(within_time())
    else:
        await within_time()


async def _taken(subscription: AsyncIterator[FeedItem], count: int) -> list[tuple[int, Any]]:
    """The next items, each with its number."""
    found = [await anext(subscription) for _ in range(count)]
    return [(each.number, each.message["content"]) for each in found]


def _expected(first: int, last: int) -> list[tuple[int, int]]:
    return [(number, number) for number in range(first, last + 1)]


async def _append(feeds: Feeds, location: str, first: int, last: int) -> None:
    await feeds.store.append_many(location, [said(number) for number in range(first, last + 1)])


@check("F10", facet=FEED_LOG)
async def a_subscriber_gets_each_message_once_from_where_it_begins(subject: Subject) -> None:
    async def body() -> None:
        async with feeds_in(subject) as feeds:
            location = feeds.location()
            subscribe = partial(feeds.store.subscribe, location, every=0.02)
            async with (
                aclosing(subscribe(0)) as from_the_start,
                aclosing(subscribe(after=2)) as from_two,
                asyncio.TaskGroup() as tasks,  # which have ended before the subscriptions are closed
            ):
                first = tasks.create_task(_taken(from_the_start, 3))
                await asyncio.wait([first], timeout=0.05)  # it waits for a location that is not there yet
                await _append(feeds, location, 1, 5)
                assert await first == _expected(1, 3)
                assert await _taken(from_two, 3) == _expected(3, 5)
                # Many more than are read together, while the first subscriber does something else.
                await _append(feeds, location, 6, 455)
                assert await _taken(from_the_start, 452) == _expected(4, 455)
                await feeds.store.clear(location, keep_last=1)
                assert await _taken(from_two, 1) == _expected(455, 455), "what was deleted is nowhere"
                following = tasks.create_task(_taken(from_the_start, 1))
                await _append(feeds, location, 456, 456)
                assert await following == await _taken(from_two, 1) == _expected(456, 456)
            for wrong in (-1, True, "3"):
                await subject.refuses(InvalidEntryError, _subscribed(partial(subscribe, wrong)))
            await subject.refuses(InvalidEntryError, _subscribed(partial(feeds.store.subscribe, "")))
            await subject.refuses(ConfigurationError, _subscribed(partial(feeds.store.subscribe, location, every=0)))

    await _in_a_loop(subject, body)


async def _subscribed(subscribe: Callable[[], Any]) -> Any:
    """Asks for no item: what is wrong is said before."""
    return subscribe()


@check("F10", facet=FEED_LOG)
async def a_subscriber_without_a_number_gets_what_comes_next(subject: Subject) -> None:
    async def body() -> None:
        async with feeds_in(subject) as feeds:
            location, last = feeds.location(), 3
            await _append(feeds, location, 1, last)
            async with (
                aclosing(feeds.store.subscribe(location, every=0.02)) as subscription,
                asyncio.TaskGroup() as tasks,
            ):
                first = tasks.create_task(_taken(subscription, 1))
                while not first.done():  # it looks at the newest number some time after it has begun
                    last += 1
                    await _append(feeds, location, last, last)
                    await asyncio.wait([first], timeout=0.01)
                ((number, _),) = await first
                assert number > 3
                await _append(feeds, location, last + 1, last + 5)
                assert await _taken(subscription, last + 5 - number) == _expected(number + 1, last + 5)

    await _in_a_loop(subject, body)


@check("F10", facet=FEED_LOG)
async def two_subscribers_and_many_writers_see_one_order(subject: Subject) -> None:
    async def body() -> None:
        async with feeds_in(subject) as feeds:
            location = feeds.location()

            async def write(writer: int) -> None:
                for turn in range(4):
                    await feeds.store.append(location, said(f"{writer} {turn}"))

            async with (
                aclosing(feeds.store.subscribe(location, 0, every=0.02)) as one,
                aclosing(feeds.store.subscribe(location, 0, every=0.02)) as other,
                asyncio.TaskGroup() as tasks,
            ):
                reading = [tasks.create_task(_taken(each, 24)) for each in (one, other)]
                await at_once(subject, [partial(write, writer) for writer in range(6)])
                by_one, by_other = await asyncio.gather(*reading)
                assert by_one == by_other
                assert [number for number, _ in by_one] == [*range(1, 25)]
                assert {content for _, content in by_one} == {f"{w} {turn}" for w in range(6) for turn in range(4)}

    await _in_a_loop(subject, body)


@check("F10", facet=FEED_LOG)
async def a_subscriber_of_a_deleted_location_is_told(subject: Subject) -> None:
    async def body() -> None:
        async with feeds_in(subject) as feeds:
            location = feeds.location()
            await _append(feeds, location, 1, 3)
            async with aclosing(feeds.store.subscribe(location, 0, every=0.02)) as subscription:
                assert await _taken(subscription, 3) == _expected(1, 3)
                await _delete(subject, location)
                await _append(feeds, location, 1, 1)
                await subject.refuses(ConflictError, _taken(subscription, 1))

    await _in_a_loop(subject, body)


def _delete(subject: Subject, location: str) -> Awaitable[Any]:
    return subject.view.log(FEED_LOG).delete(stored_name("location", location))
