"""MongoDB does its work on feeds, and its answer is lost."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from firefly_memory import MongoDBStore
from firefly_memory.errors import OutcomeUnknownError
from firefly_memory.feeds.log import FEED_LOG, Feed, FeedLog
from firefly_memory.testing.proxy import CALM, Proxy
from tests.support.backends import Place
from tests.support.mongodb_feeds import DATABASE, NOW, a_message, new_location

pytestmark = pytest.mark.thorough

MANY = 20
"""More answers than an act has."""

Act = Callable[[FeedLog, str], Coroutine[Any, Any, Any]]


async def append(log: FeedLog, name: str) -> Any:
    return await log.append(name, [a_message("3")], "ann")


async def append_first(log: FeedLog, name: str) -> Any:
    return await log.append(f"{name} new", [a_message("1")], "ann")


async def append_several(log: FeedLog, name: str) -> Any:
    return await log.append(name, [a_message("3"), a_message("4")], "ann")


async def append_first_several(log: FeedLog, name: str) -> Any:
    return await log.append(f"{name} new", [a_message("1"), a_message("2")], "ann")


async def begin(log: FeedLog, name: str) -> Any:
    return await log.begin(Feed(f"{name} new", 9, 5, "ann", NOW, NOW))


async def drop(log: FeedLog, name: str) -> Any:
    return await log.drop(name, 1)


async def delete(log: FeedLog, name: str) -> Any:
    return await log.delete(name)


async def delete_as_seen(log: FeedLog, name: str) -> Any:
    return await log.delete(name, 2)


@pytest.fixture
def proxy(place: Place) -> Iterator[Proxy]:
    port = urlsplit(place.mongodb()).port
    assert port is not None
    with Proxy(port, CALM).running() as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("act", "expected", "there", "doubts"),
    [
        (append, 3, "123", False),
        (append_first, 1, "12/1", False),
        (append_several, 4, "1234", False),
        (append_first_several, 2, "12/12", False),
        (begin, True, "12/", False),
        (drop, 1, "2", True),
        (delete, 2, "", True),
        (delete_as_seen, 2, "", True),
    ],
)
async def test_after_any_lost_reply_the_result_is_right_or_outcome_unknown(
    act: Act, expected: Any, there: str, doubts: bool, place: Place, proxy: Proxy
) -> None:
    answers, lost = 0, 1
    async with MongoDBStore(place.mongodb(), database=DATABASE) as direct:
        log = direct.suspending.log(FEED_LOG)
        while lost and answers < MANY:
            name = new_location()
            await log.append(name, [a_message("1"), a_message("2")], "ann")
            async with MongoDBStore(proxy.url(place.mongodb()), database=DATABASE) as store:
                await store.async_count("warm")
                proxy.lose_reply(answers)
                try:
                    assert await act(store.suspending.log(FEED_LOG), name) == expected, answers
                except OutcomeUnknownError:
                    assert doubts
                finally:
                    proxy.calm_down()
                lost, answers = proxy.lost, answers + 1
            assert await found(log, name) in ((there, "12") if doubts else (there,)), answers
    assert 1 < answers < MANY


async def found(log: FeedLog, name: str) -> str:
    messages = "".join(each.message for each in await log.after(name, 0, None))
    if await log.feed(f"{name} new") is None:
        return messages
    return f"{messages}/" + "".join(each.message for each in await log.after(f"{name} new", 0, None))
