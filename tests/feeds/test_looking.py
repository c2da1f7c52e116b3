"""Feeds and their messages as people look at them: listed, shown, counted and deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from firefly_memory import EntryStore, FileStore, InvalidEntryError, NotSupportedError, service
from firefly_memory.feeds.flows import FeedFlows
from firefly_memory.feeds.log import MOST_MESSAGES
from firefly_memory.feeds.looking import FEEDS, MESSAGES, FeedReader, MessageReader
from firefly_memory.identifiers import stored_text
from firefly_memory.looking import Query
from firefly_memory.testing import Mode
from firefly_memory.testing.clock import stopped
from tests.service.conftest import Look
from tests.support.backends import Place
from tests.support.stored_feeds import KINDS, START, append, append_days, opened

LOCATIONS = sorted(["a", "A", "a/b", "a%2Fb", "\x00", "\ud800", "\x10", "é", "' OR 1=1 --"], key=stored_text)
OWNERS = ["ann \x00", None, "bob"]


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, place: Place, new_sqlite_file: Path) -> AsyncIterator[EntryStore]:
    """Nine feeds, and a long one that has dropped its first messages."""
    async with opened(request.param, place, new_sqlite_file, "feeds_to_look_at") as store:
        for number, location in enumerate(LOCATIONS):
            await append_days(store, location, number, owner=OWNERS[number % 3])
        with stopped(START):
            await append(store, "long", {"type": "user_message", "content": "\x00"}, {"n": 2}, owner="eve")
            await append(store, "long", *({"type": each, "agent_key": f"a\x00{each}"} for each in ("task", "final")))
            await append(store, "long", {"type": ["list"], "is_global": True})
        await FeedFlows(store.suspending).clear("long", 4, None)
        yield store


@pytest.fixture(params=Mode)
def look(request: pytest.FixtureRequest, store: EntryStore) -> Look:
    return Look(store, request.param)


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [each["id"] for each in rows]


async def test_feeds_are_listed_by_their_locations_page_by_page(look: Look) -> None:
    expected = sorted([*LOCATIONS, "long"], key=stored_text)
    of_ann = [each for number, each in enumerate(LOCATIONS) if number % 3 == 0]
    for limit in (1, 4, 50):
        rows = await look.rows("feeds", limit)
        assert [each["location"] for each in rows] == expected
        rows = await look.rows("feeds", limit, {"owner": "ann \x00"})
        assert [each["location"] for each in rows] == of_ann
        for row in rows:
            assert await look.get("feeds", row["id"]) == row
    assert len({*ids(await look.rows("feeds"))}) == 10


async def test_a_row_has_every_field(look: Look) -> None:
    assert await look.get("feeds", "long") == {
        "id": "long",
        "location": "long",
        "owner": "eve",
        "messages": 4,
        "newest": 5,
        "created_at": START.isoformat(),
        "updated_at": START.isoformat(),
    }
    assert await look.get("feed-messages", "long/3") == {
        "id": "long/3",
        "location": "long",
        "number": 3,
        "type": "task",
        "agent_key": "a\x00task",
        "message": {"type": "task", "agent_key": "a\x00task"},
        "created_at": START.isoformat(),
    }
    other = await look.get("feed-messages", "long/5")
    assert other is not None
    assert (other["type"], other["agent_key"], other["message"]) == (None, None, {"type": ["list"], "is_global": True})


async def test_messages_are_listed_by_their_numbers_page_by_page(look: Look) -> None:
    for limit in (1, 3, 50):
        rows = await look.rows("feed-messages", limit, {"location": "long"})
        assert [(each["id"], each["number"]) for each in rows] == [
            (f"long/{number}", number) for number in (2, 3, 4, 5)
        ]
    rows = await look.rows("feed-messages", 50, {"location": "a/b"})
    assert ids(rows) == ["a%2Fb/1"]
    assert await look.get("feed-messages", "a%2Fb/1") == rows[0]
    assert await look.rows("feed-messages", 50, {"location": "unknown"}) == []


SELECTED: list[tuple[str, Mapping[str, Any], list[str]]] = [
    ("feeds", {"messages>=": 2}, ["long"]),
    ("feeds", {"location~": "LON", "newest": 5}, ["long"]),
    ("feeds", {"owner": "bob", "updated_at<": (START + timedelta(days=3)).isoformat()}, [LOCATIONS[2]]),
    ("feeds", {"owner": "nobody"}, []),
    ("feed-messages", {"location": "long", "type": "final"}, ["long/4"]),
    ("feed-messages", {"location": "long", "agent_key": "a\x00task"}, ["long/3"]),
    ("feed-messages", {"location": "long", "message~": "is_global"}, ["long/5"]),
    ("feed-messages", {"location": "long", "number>=": 3, "number<": 5}, ["long/3", "long/4"]),
    ("feed-messages", {"location": "long", "created_at<": START.isoformat()}, []),
]


async def test_rows_are_selected_by_every_field(look: Look) -> None:
    for kind, where, found in SELECTED:
        rows = await look.rows(kind, 2, where)
        assert [each["location"] if kind == "feeds" else each["id"] for each in rows] == found, where
        assert (await look.count(kind, where=where)).rows == len(found)


async def test_feeds_are_counted_and_deleted_with_their_messages(look: Look) -> None:
    assert {kind: (each.rows, each.tokens) for kind, each in (await look.stats()).items() if "feed" in kind} == {
        "feeds": (10, None),
        "feed-messages": (13, None),
    }
    assert (await look.count("feed-messages", where={"location": "long"})).rows == 4
    with pytest.raises(NotSupportedError, match="a message goes with its feed"):
        await look.delete("feed-messages", ["long/5"])
    assert await look.delete("feeds", ["long", "long", "unknown", "a%2Fb"]) == 2
    assert await look.get("feeds", "long") is await look.get("feed-messages", "long/5") is None
    assert await look.delete("feeds", where={"owner": "bob"}) == 3
    counted = [(await look.count(kind)).rows for kind in ("feeds", "feed-messages")]
    assert counted == [5, 5]
    assert (await look.count("feed-messages", where={"location": "long"})).rows == 0


async def test_made_up_ids_and_cursors_find_nothing(store: EntryStore) -> None:
    look = Look(store, Mode.SUSPENDING)
    numbers = ["0", "1", "6", "-2", "+2", " 2", "2.0", "٢", "", "x", str(MOST_MESSAGES), str(2**63), "9" * 19, "9" * 99]
    for unknown in (*(f"long/{number}" for number in numbers), "unknown/1"):
        assert await look.get("feed-messages", unknown) is None
    assert await look.get("feed-messages", "long/0002") == await look.get("feed-messages", "long/2")
    assert await look.get("feeds", "unknown") is None
    with pytest.raises(InvalidEntryError, match="location"):
        await look.page("feed-messages")
    with pytest.raises(InvalidEntryError, match="is no cursor"):
        await look.page("feeds", after="made up")
    for kind, where in (("feeds", {"owner": "x" * 513}), ("feed-messages", {"location": "x" * 513})):
        with pytest.raises(InvalidEntryError):
            await look.page(kind, where=where)
    readers = FeedReader(store.suspending, None), MessageReader(store.suspending, None)
    assert len(await readers[0].page(Query({}, "location", ("\ud800",), 99))) < 10, "no database takes it as it is"
    for number, count in ((-(10**30), 4), (-1, 4), (10**30, 0)):
        found = await readers[1].page(Query({"location": "long"}, "number", (number,), 99))
        assert len(found) == count


def test_a_table_shows_what_people_read() -> None:
    of_feeds, of_messages = ([each.name for each in kind.fields if each.in_table] for kind in (FEEDS, MESSAGES))
    assert of_feeds == ["location", "owner", "messages", "created_at", "updated_at"]
    assert of_messages == ["number", "type", "agent_key", "message", "created_at"]


def test_a_store_that_keeps_no_feeds_says_so(tmp_path: Path) -> None:
    with FileStore(tmp_path) as files:
        assert "feeds" not in [each.kind for each in service.resources(files)]
        with pytest.raises(NotSupportedError, match="messages of agents cannot be kept in FileStore"):
            service.list(files, "feeds")
