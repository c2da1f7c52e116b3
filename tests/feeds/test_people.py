"""The feeds of a person, erased from every kind of store."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import EntryStore, ErasedError
from firefly_memory.erasure import async_erase, async_find_text, async_readmit
from firefly_memory.feeds import people
from firefly_memory.feeds.log import FEED_LOG, feed_identity
from firefly_memory.feeds.people import FeedEraser
from firefly_memory.identifiers import original_name, stored_text
from firefly_memory.people import Owned
from tests.support.backends import Place
from tests.support.stored_feeds import KINDS, START, append, kept, numbers, opened

ANN = "ann \x00\u2603"
OWNER = stored_text(ANN)
LOCATIONS = [f"job {number} \x10" for number in range(5)]


@pytest.fixture(params=KINDS)
async def store(
    request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[EntryStore]:
    """Five feeds of Ann with 1 to 5 messages, and others."""
    monkeypatch.setattr(people, "_PAGE", 2)
    async with opened(request.param, place, new_sqlite_file, "feeds_of_people") as store:
        for number, location in enumerate(LOCATIONS, 1):
            messages: list[dict[str, Any]] = [
                {"content": f"{place} of Tarantella", "agent_key": "a"} for place in range(number)
            ]
            await append(store, location, *messages, owner=ANN)
        for owner in ("bob", None, OWNER):
            await append(store, f"of {owner}", {"content": "x"}, owner=owner)
        yield store
        await async_readmit(store, ANN)


async def test_the_eraser_finds_and_deletes_what_belongs_to_the_person(store: EntryStore) -> None:
    eraser = FeedEraser(store.suspending)
    pages = [page async for page in eraser.owned(OWNER)]
    assert [len(page) for page in pages] == [2, 2, 1]
    found = [each for page in pages for each in page]
    assert found == [
        Owned(stored_text(location), (feed_identity(stored_text(location)),), {"feeds": 1, "feed-messages": number})
        for number, location in enumerate(LOCATIONS, 1)
    ]
    assert [page async for page in eraser.owned("nobody")] == []
    assert await eraser.delete(()) == {}
    await append(store, LOCATIONS[0], {"content": "since then"})
    deleted = Counter[str]()
    async for page in eraser.owned(OWNER):  # each page is deleted before the next is read
        deleted.update(await eraser.delete(page))
    assert deleted == {"feeds": 5, "feed-messages": 16}
    assert await eraser.delete(found) == {}, "nothing of it is there any more"
    assert [*numbers(await kept(store))] == ["of None", f"of {OWNER}", "of bob"]


async def test_nothing_of_an_erased_person_is_left_or_comes_back(store: EntryStore) -> None:
    log = store.suspending.log(FEED_LOG)
    first = await log.feed(stored_text(LOCATIONS[0]))
    assert first is not None
    receipt = await async_erase(store, ANN)
    assert receipt.rows == {"feeds": 5, "feed-messages": 15}
    assert await async_find_text(store, "Tarantella") == {}
    again = first._replace(newest=0, created_at=START, updated_at=START)
    for feed in (again, again._replace(owner=None), again._replace(location="new")):
        with pytest.raises(ErasedError):
            await log.begin(feed)
        location, owner = original_name(feed.location), None if feed.owner is None else ANN
        with pytest.raises(ErasedError):
            await append(store, location, {"content": 1}, {"content": 2}, owner=owner)
    assert [*numbers(await kept(store))] == ["of None", f"of {OWNER}", "of bob"]
    assert await async_readmit(store, ANN)
    assert await append(store, LOCATIONS[0], {"content": 1}, owner=ANN) == [1]
