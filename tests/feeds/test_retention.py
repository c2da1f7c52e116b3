"""Messages that are out of bounds, pruned from every kind of store. The feeds stay."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import ConflictError, EntryStore
from firefly_memory.feeds import retention
from firefly_memory.feeds.flows import FeedFlows
from firefly_memory.feeds.log import FEED_LOG
from firefly_memory.feeds.retention import FeedPruner
from firefly_memory.people import Doomed
from firefly_memory.retention import async_prune, prune
from firefly_memory.testing.clock import stopped
from tests.support.backends import Place
from tests.support.stored_feeds import KINDS, START, append_days, kept, numbers, opened

EVERYTHING = {
    "anns": [*range(1, 7)],
    "bobs": [1, 2],
    "cleared": [],
    "late": [1, 2, 3],
    "mixed": [1, 2, 3, 4],
    "of the past": [1],
}


@pytest.fixture(params=KINDS)
async def store(
    request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[EntryStore]:
    """Feeds with a message a day, or with clocks that differ; one has none any more."""
    monkeypatch.setattr(retention, "PAGE", 2)
    async with opened(request.param, place, new_sqlite_file, "feeds_to_prune") as store:
        await append_days(store, "anns", 0, 1, 2, 3, 4, 5, owner="ann")
        await append_days(store, "bobs", 1, 2, owner="bob \x00")
        await append_days(store, "mixed", 1, 4, 0, 5, owner="ann")
        await append_days(store, "of the past", -100)
        await append_days(store, "late", 7, 8, 8)
        await append_days(store, "cleared", 3)
        await FeedFlows(store.suspending).clear("cleared", None, None)
        yield store


STEPS: list[tuple[Mapping[str, Any], Mapping[str, Sequence[int]], int]] = [
    ({"keep_last": 1}, {}, 0),
    ({"max_tokens": 1}, {}, 0),
    ({"older_than": "1d", "owner": "eve"}, {}, 0),
    ({"keep_last": 1, "max_tokens": 1, "older_than": "50d"}, {"of the past": []}, 1),
    ({"older_than": "156h", "owner": "bob \x00"}, {"bobs": []}, 2),
    ({"older_than": "156h"}, {"anns": [4, 5, 6], "mixed": [2, 3, 4]}, 4),
    ({"older_than": "132h"}, {"anns": [5, 6]}, 1),
    ({"older_than": "4d", "owner": "ann"}, {"anns": [6], "mixed": [4]}, 3),
    ({"older_than": "1d"}, {"anns": [], "mixed": [], "late": [2, 3]}, 3),
]
"""Bounds, what each changes of what the one before has left, and how many messages go."""


async def test_old_messages_go(store: EntryStore) -> None:
    before: Mapping[str, Sequence[int]] = EVERYTHING
    with stopped(START + timedelta(days=9)):
        for bounds, changed, messages in STEPS:
            after = {**before, **changed}
            counted = prune(store, dry_run=True, **bounds)
            assert numbers(await kept(store)) == before, bounds
            pruned = await async_prune(store, **bounds)
            assert numbers(await kept(store)) == after, bounds
            for each in (counted, pruned):
                assert each.rows == ({"feed-messages": messages} if messages else {}), bounds
            before = after


async def test_a_feed_that_has_lost_all_messages_keeps_its_number_and_its_owner(store: EntryStore) -> None:
    with stopped(START + timedelta(days=9)):
        prune(store, older_than="1h")
    await append_days(store, "anns", 9, owner="ann")
    assert numbers(await kept(store))["anns"] == [7], "a subscriber who has seen 6 misses nothing"
    with pytest.raises(ConflictError, match="another owner"):
        await append_days(store, "bobs", 9, owner="ann")


async def test_messages_that_are_appended_meanwhile_stay(store: EntryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = FeedPruner.delete

    async def append_and_delete(pruner: FeedPruner, doomed: Sequence[Doomed]) -> Any:
        for each in doomed:
            if each.name == "bobs":
                await append_days(store, each.name, 9)
            if each.name == "of the past":
                assert await store.suspending.log(FEED_LOG).delete(each.name) == 1
        return await delete(pruner, doomed)

    monkeypatch.setattr(FeedPruner, "delete", append_and_delete)
    with stopped(START + timedelta(days=9)):
        pruned = await async_prune(store, older_than="132h")
    assert numbers(await kept(store)) == {
        "anns": [5, 6],
        "bobs": [3],
        "cleared": [],
        "late": [1, 2, 3],
        "mixed": [2, 3, 4],
    }
    assert pruned.rows == {"feed-messages": 7}
