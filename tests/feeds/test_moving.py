"""Feeds in archives and copies."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import ConflictError, CorruptDataError, EntryStore, ErasedError, FileStore, InMemoryStore
from firefly_memory.archive import async_export_jsonl, async_import_jsonl, export_jsonl, import_jsonl
from firefly_memory.copying import async_copy_store, copy_store
from firefly_memory.erasure import erase, readmit
from firefly_memory.errors import NotSupportedError
from firefly_memory.feeds import moving
from firefly_memory.feeds.flows import FeedFlows
from firefly_memory.feeds.log import FEED_LOG
from firefly_memory.testing.clock import stopped
from firefly_memory.transfer.counts import Counts
from tests.support.backends import Place
from tests.support.stored_feeds import KINDS, START, append, append_days, emptied, kept, numbers, opened

EVERYTHING = Counts(feeds=6, feed_messages=17)
OF_EVERY_KIND: list[dict[str, Any]] = [
    {"type": "user_message", "content": "\x00 \ud800 \x10", "\x00": 2**70},
    {"type": "observation", "agent_key": "a\x00", "content": {"~str": -0.0, "$a.b": [1e300, None]}},
    {},
    {"is_global": True, "type": ["no text"]},
]


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "_PAGE", 2)


async def filled(store: EntryStore) -> EntryStore:
    """Whole feeds, feeds that have dropped some or all of their messages, and one that never had any."""
    log, flows = store.suspending.log(FEED_LOG), FeedFlows(store.suspending)
    with stopped(START):
        await append(store, "every kind \x00\ud800\x10", *OF_EVERY_KIND, owner="ann \x00")
    await append_days(store, "a", 3, 1, 2, owner="bob")
    await append_days(store, "dropped", 0, 1, 2, 3, 4, 5, 6, 7)
    await flows.clear("dropped", 3, None)
    await append_days(store, "empty", 0, 9)
    await flows.clear("empty", None, None)
    await append_days(store, "long", 0, 1, 2, 3, 4, 5, 6)
    feed = await log.feed("a")
    assert feed is not None
    await log.begin(
        feed._replace(location="never", newest=0, dropped=0, owner=None, created_at=START, updated_at=START)
    )
    return store


RING = {*zip(KINDS, [*KINDS[1:], KINDS[0]], strict=True)}
"""Each kind is once the source and once the target; the other pairs are in the thorough part."""

PAIRS = [
    pytest.param(source, target, marks=[] if (source, target) in RING else [pytest.mark.thorough])
    for source in KINDS
    for target in KINDS
]


@pytest.fixture
async def pair(
    source_kind: str, target_kind: str, place: Place, new_sqlite_file: Path
) -> AsyncIterator[tuple[EntryStore, EntryStore]]:
    async with (
        opened(source_kind, place, new_sqlite_file, "feeds_source") as source,
        opened(target_kind, place, new_sqlite_file, "feeds_target") as target,
    ):
        yield source, target


@pytest.mark.parametrize(("source_kind", "target_kind"), PAIRS)
async def test_a_copy_and_an_import_have_every_message_with_its_number(pair: tuple[EntryStore, EntryStore]) -> None:
    source, target = pair
    expected = await kept(await filled(source))
    assert numbers(expected) == {
        "a": [1, 2, 3],
        "dropped": [6, 7, 8],
        "empty": [],
        "every kind \x00\ud800\x10": [1, 2, 3, 4],
        "long": [*range(1, 8)],
        "never": [],
    }
    for before in (Counts(), EVERYTHING):
        copied = await async_copy_store(source, target)
        assert copied.equal
        assert (copied.before, copied.target.counts) == (before, EVERYTHING)
        assert await kept(target) == expected
    assert copy_store(source, target).source.checksum == copied.target.checksum, "in the other mode"
    file, again = io.StringIO(), io.StringIO()
    assert await async_export_jsonl(source, file) == EVERYTHING
    for _ in range(2):  # into a store that has everything, and into one that has nothing
        assert await async_import_jsonl(target, file.getvalue().splitlines()) == EVERYTHING
        assert await kept(target) == expected
        await emptied(target)
    assert import_jsonl(target, file.getvalue().splitlines()) == EVERYTHING
    assert await kept(target) == expected
    export_jsonl(target, again)
    assert again.getvalue().splitlines()[1:] == file.getvalue().splitlines()[1:]
    assert await append(target, "empty", {"content": "next"}) == [3], "the numbers go on"


@pytest.fixture
async def source() -> AsyncIterator[EntryStore]:
    with InMemoryStore() as store:
        yield await filled(store)


@pytest.fixture
def target() -> Iterator[EntryStore]:
    with InMemoryStore() as store:
        yield store


def lines_of(store: EntryStore, **options: Any) -> list[str]:
    file = io.StringIO()
    export_jsonl(store, file, **options)
    return file.getvalue().splitlines()


async def test_an_archive_names_the_kinds_and_what_came_first(source: EntryStore) -> None:
    header, *items, end = map(json.loads, lines_of(source))
    since = {"version": 1, "since": "firefly-memory 0.2"}
    assert header["kinds"] == {"feed": since, "feed-message": since}
    assert (end["end"]["feeds"], end["end"]["feed_messages"]) == (6, 17)
    assert items[:2] == [
        {
            "feed": {
                "location": "a",
                "created_at": (START + timedelta(days=3)).isoformat(),
                "updated_at": (START + timedelta(days=2)).isoformat(),
                "owner": "bob",
            }
        },
        {
            "feed-message": {
                "location": "a",
                "number": 1,
                "message": {"type": "task", "content": 3, "agent_key": "a"},
                "created_at": (START + timedelta(days=3)).isoformat(),
            }
        },
    ]
    assert next(each["feed"]["dropped"] for each in items if each.get("feed", {}).get("location") == "dropped") == 5
    assert EVERYTHING.in_words().endswith(", 6 feeds with 17 messages")


async def test_a_part_or_none_of_the_feeds_can_be_moved(source: EntryStore, target: EntryStore) -> None:
    lines = lines_of(source)
    assert import_jsonl(target, lines, only="e") == Counts(feeds=2, feed_messages=4)
    assert [*numbers(await kept(target))] == ["empty", "every kind \x00\ud800\x10"]
    assert import_jsonl(target, lines, feeds=False) == copy_store(source, InMemoryStore(), feeds=False).before
    assert "feed" not in "".join(lines_of(source, raw_messages=False)), "it has nothing but messages"
    with InMemoryStore() as empty:
        assert import_jsonl(empty, lines, dry_run=True) == EVERYTHING
        assert await kept(empty) == []


async def test_a_store_that_keeps_no_feeds_says_which_do(source: EntryStore, tmp_path: Path) -> None:
    words = (
        r"cannot keep messages of agents; InMemoryStore, .* can, and feeds=False \(--without-feeds\) leaves them out"
    )
    with FileStore(tmp_path) as target:
        with pytest.raises(NotSupportedError, match=words):
            copy_store(source, target)
        with pytest.raises(NotSupportedError, match=f"line 2 of the archive: .*{words}"):
            import_jsonl(target, lines_of(source))
        assert copy_store(source, target, feeds=False).equal


class StopError(Exception):
    """What ends a copy in the middle."""


@pytest.mark.parametrize("after", range(1, 22, 2))
async def test_a_copy_that_broke_off_goes_on(after: int, source: EntryStore, target: EntryStore) -> None:
    def stop(step: str, counts: Counts) -> None:
        if step == "copying" and counts.total == after:
            raise StopError

    with pytest.raises(StopError):
        copy_store(source, target, progress=stop)
    begun = sum(len(items) for _, items in await kept(target))
    assert begun < 17
    copied = copy_store(source, target)
    assert copied.equal
    assert copied.before.feed_messages == begun
    assert await kept(target) == await kept(source)


@pytest.mark.parametrize("after", [3, 9, 20])
async def test_an_import_that_broke_off_goes_on(after: int, source: EntryStore, target: EntryStore) -> None:
    lines = lines_of(source)
    with pytest.raises(CorruptDataError, match="ends too early"):
        import_jsonl(target, lines[:after])
    assert import_jsonl(target, lines) == EVERYTHING
    assert await kept(target) == await kept(source)


@pytest.mark.parametrize("merge", [False, True])
async def test_an_older_copy_gets_what_came_since(merge: bool, source: EntryStore, target: EntryStore) -> None:
    copy_store(source, target)
    for location in ("a", "empty", "dropped", "never", "new"):
        await append_days(source, location, 20, 21, 22)
    await FeedFlows(source.suspending).clear("every kind \x00\ud800\x10", 4, None)
    assert copy_store(source, target, merge=merge).equal
    assert await kept(target) == await kept(source)


async def test_a_merge_keeps_old_messages_that_the_source_has_dropped(source: EntryStore, target: EntryStore) -> None:
    copy_store(source, target)
    await FeedFlows(source.suspending).clear("long", 2, None)
    await append_days(source, "long", 20)
    with pytest.raises(ConflictError, match="message 1 of feed 'long' of the target is not in the source; nothing was"):
        copy_store(source, target)
    copied = copy_store(source, target, merge=True)
    assert copied.equal
    assert copied.beyond == Counts(feed_messages=5)
    assert numbers(await kept(target))["long"] == [*range(1, 9)]
    assert (await kept(target))[4][1][5:] == (await kept(source))[4][1]


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("keep_last", [3, 1, 0])
async def test_a_copy_that_has_dropped_messages_gives_way(
    keep_last: int, merge: bool, source: EntryStore, target: EntryStore
) -> None:
    copy_store(source, target)
    await FeedFlows(target.suspending).clear("long", keep_last, None)
    assert copy_store(source, target, merge=merge).equal
    assert await kept(target) == await kept(source)


async def test_a_merge_refuses_a_feed_of_which_the_source_lacks_messages(
    source: EntryStore, target: EntryStore
) -> None:
    copy_store(source, target)
    await FeedFlows(target.suspending).clear("long", 3, None)
    await append_days(target, "long", 30)
    before = await kept(target)
    with pytest.raises(ConflictError, match="feed 'long' is another one in the target; delete one of the two"):
        copy_store(source, target, merge=True)
    await FeedFlows(source.suspending).clear("long", 0, None)
    await append_days(source, "long", 31)  # number 8, as the target's, and another one
    with pytest.raises(ConflictError, match="message 8 of feed 'long' is another one in the target"):
        copy_store(source, target, merge=True)
    assert await kept(target) == before


async def test_a_feed_whose_numbers_begin_after_the_targets_is_another_one(
    source: EntryStore, target: EntryStore
) -> None:
    copy_store(source, target)
    await append_days(source, "long", 20, 21)
    await FeedFlows(source.suspending).clear("long", 1, None)
    with pytest.raises(ConflictError, match="feed 'long' is another one in the target"):
        copy_store(source, target, merge=True)
    with pytest.raises(ConflictError, match="feed 'long' is another one in the target"):
        import_jsonl(target, lines_of(source))
    assert numbers(await kept(target))["long"] == [*range(1, 8)]


@pytest.mark.parametrize("merge", [False, True])
async def test_feeds_of_another_owner_or_origin_are_conflicts(
    merge: bool, source: EntryStore, target: EntryStore
) -> None:
    for owner, day in (("eve", 3), (None, 3), ("bob", 4)):
        await append_days(target, "a", day, owner=owner)
        before = await kept(target)
        with pytest.raises(ConflictError, match=r"feed 'a' .*is another one in the"):
            copy_store(source, target, merge=merge)
        with pytest.raises(ConflictError, match="feed 'a' is another one in the target"):
            import_jsonl(target, lines_of(source))
        assert (await kept(target))[0] == before[0]
        await emptied(target)


async def test_messages_of_the_target_alone_are_kept_by_a_merge_only(source: EntryStore, target: EntryStore) -> None:
    copy_store(source, target)
    await append_days(target, "a", 30)
    await append_days(target, "other", 1)
    with pytest.raises(ConflictError, match="message 4 of feed 'a' of the target is not in the source"):
        copy_store(source, target)
    copied = copy_store(source, target, merge=True)
    assert (copied.equal, copied.beyond) == (True, Counts(feeds=1, feed_messages=2))
    assert import_jsonl(target, lines_of(source)) == EVERYTHING
    assert numbers(await kept(target))["a"] == [1, 2, 3, 4]


async def test_another_message_of_the_same_number_is_a_conflict(source: EntryStore, target: EntryStore) -> None:
    await append_days(target, "a", 3, 1, 1, owner="bob")
    for call in (
        lambda: copy_store(source, target),
        lambda: copy_store(source, target, merge=True),
        lambda: import_jsonl(target, lines_of(source)),
    ):
        with pytest.raises(ConflictError, match=r"message 3 of feed 'a' .*is another one in the"):
            call()
    assert [each.message["content"] for each in (await kept(target))[0][1]] == [3, 1, 1]


async def test_a_write_in_the_middle_of_a_copy_is_noticed(
    source: EntryStore, target: EntryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: Any = target.blocking.log(FEED_LOG)
    real = log.append

    async def append_after_another(location: str, messages: Any, owner: str | None) -> int | None:
        monkeypatch.setattr(log, "append", real)
        await append_days(target, location, 8)
        result: int | None = await real(location, messages, owner)
        return result

    monkeypatch.setattr(log, "append", append_after_another)
    with pytest.raises(ConflictError, match="feed 'a' was changed in the target meanwhile; start again"):
        copy_store(source, target)


async def test_messages_that_are_deleted_while_they_are_read_are_noticed(source: EntryStore) -> None:
    def clear(_: str, counts: Counts) -> None:
        if counts.feed_messages == 14:  # the fourth of the feed
            for each in ("blocking", "suspending"):
                log: Any = getattr(source, each).log(FEED_LOG)
                log._feeds["long"].drop(6)

    with pytest.raises(ConflictError, match="messages of feed 'long' were deleted while it was read; start again"):
        export_jsonl(source, io.StringIO(), progress=clear)


async def test_a_message_that_is_missing_is_damage(source: EntryStore, target: EntryStore) -> None:
    log: Any = source.blocking.log(FEED_LOG)
    del log._feeds["long"]._messages[3]
    with pytest.raises(CorruptDataError, match=r"message 4 of feed 'long' is damaged \(it is missing\)"):
        export_jsonl(source, io.StringIO())
    with pytest.raises(CorruptDataError, match=r"message 4 of feed 'long' is damaged \(it is missing\)"):
        copy_store(source, target)


async def test_feeds_of_an_erased_person_end_an_import_and_a_copy(source: EntryStore, target: EntryStore) -> None:
    erase(target, "bob")
    with pytest.raises(ErasedError):
        import_jsonl(target, lines_of(source))
    with pytest.raises(ErasedError):
        copy_store(source, target)
    assert await kept(target) == []
    readmit(target, "bob")
    assert copy_store(source, target).equal
