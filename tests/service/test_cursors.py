"""Cursors are opaque, belong to one list, and only carry values."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firefly_memory import ConversationMemory, EntryStore, InMemoryStore, InvalidEntryError, MemoryEntry, service
from firefly_memory.conversations.looking import TURNS
from firefly_memory.entries.looking import ENTRIES
from firefly_memory.service.cursors import as_cursor, from_cursor
from tests.service.conftest import Look

REFUSED = "after: is no cursor of "
WHEN = datetime(2024, 5, 6, tzinfo=UTC)


async def cursor_of(look: Look, store: EntryStore, **options: Any) -> str:
    for number in range(3):
        await store.async_save("notes", MemoryEntry(key="k", content=number))
    after = (await look.page("entries", limit=1, **options)).next
    assert after is not None
    return after


async def test_a_cursor_of_another_list_is_refused(look: Look, store: EntryStore) -> None:
    cursor = await cursor_of(look, store, where={"namespace": "notes"})
    assert len(await look.page("entries", where={"namespace": "notes"}, after=cursor)) == 2
    await ConversationMemory(store=store).async_add_turn("c", "a", "b")
    others: list[tuple[str, dict[str, Any]]] = [
        ("entries", {}),
        ("entries", {"namespace": "other"}),
        ("entries", {"namespace": "notes", "key": "k"}),
        ("working-facts", {}),
        ("conversations", {}),
        ("turns", {"conversation_id": "c"}),
    ]
    for kind, where in others:
        with pytest.raises(InvalidEntryError, match=f"{REFUSED}{kind} in this order and selection; begin again"):
            await look.page(kind, where=where, after=cursor)


async def test_a_changed_cursor_is_refused(look: Look, store: EntryStore) -> None:
    cursor = await cursor_of(look, store)
    for place in range(len(cursor)):
        changed = cursor[:place] + ("A" if cursor[place] != "A" else "B") + cursor[place + 1 :]
        if urlsafe_b64decode(changed + "==") != urlsafe_b64decode(cursor + "=="):  # not only bits that nobody reads
            with pytest.raises(InvalidEntryError, match=REFUSED):
                await look.page("entries", after=changed)
    for cut in range(len(cursor)):
        with pytest.raises(InvalidEntryError, match=REFUSED):
            await look.page("entries", after=cursor[:cut])


NOTES = InMemoryStore()
NOTES.save("notes", MemoryEntry())
TEXT = st.text(st.characters(exclude_categories=()))
NAME = st.text(st.characters(exclude_categories=()), max_size=512)


def encoded(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@given(st.one_of(TEXT, st.recursive(st.none() | TEXT | st.integers() | st.floats(), st.lists).map(encoded)))
def test_no_made_up_text_is_a_cursor(made_up: str) -> None:
    for kind, where in (
        ("entries", {}),
        ("working-facts", {}),
        ("conversations", {}),
        ("turns", {"conversation_id": "c"}),
    ):
        with pytest.raises(InvalidEntryError, match=REFUSED):
            service.list(NOTES, kind, where=where, after=made_up)


@pytest.mark.parametrize(
    "made_up", [b"bytes", 5, 1.5, ["x"], {"$gt": ""}, "[" * 10_000, "W" * 20_000, encoded([[]] * 9)]
)
def test_no_other_value_is_a_cursor(made_up: Any) -> None:
    with pytest.raises(InvalidEntryError, match=REFUSED):
        service.list(NOTES, "entries", after=made_up)


@given(NAME, st.datetimes(timezones=st.just(UTC)), NAME)
def test_a_cursor_says_where_a_page_ended(namespace: str, moment: datetime, entry_id: str) -> None:
    position = namespace, moment, entry_id
    cursor = as_cursor(ENTRIES, "namespace", {"key": "k"}, position)
    assert cursor.isascii()
    assert from_cursor(ENTRIES, "namespace", {"key": "k"}, cursor) == position


@pytest.mark.parametrize(
    "position",
    [
        ("notes",),
        ("notes", WHEN),
        ("notes", WHEN, "x", "y"),
        ("notes", "2024-05-06", "x"),
        ("notes", "soon", "x"),
        ("notes", WHEN, 5),
        ("notes", WHEN, None),
        ({"$gt": ""}, WHEN, "x"),
        (["notes"], WHEN, "x"),
        ("n" * 513, WHEN, "x"),
    ],
)
def test_a_place_of_other_types_is_refused_whoever_knows_how_cursors_are_made(position: Any) -> None:
    with pytest.raises(InvalidEntryError, match=REFUSED):
        from_cursor(ENTRIES, "namespace", {}, as_cursor(ENTRIES, "namespace", {}, position))


@pytest.mark.parametrize("number", [-1, 2**31, 2**70, True, 1.0, "1"])
def test_a_number_that_no_turn_has_is_refused(number: Any) -> None:
    with pytest.raises(InvalidEntryError, match=REFUSED):
        from_cursor(TURNS, "number", {}, as_cursor(TURNS, "number", {}, (number,)))


HOSTILE = ["'; DROP TABLE memory_entries; --", '" OR ""="', "$where", "{'$gt': ''}", "\x00", "\ud800", "%", "z" * 512]


async def test_a_forged_place_is_nothing_but_a_value(look: Look, store: EntryStore) -> None:
    """It begins elsewhere in the same list: rows that are not selected are not reached."""
    await cursor_of(look, store)
    await store.async_save("secret", MemoryEntry())
    where = {"namespace": "notes"}
    notes = {row["id"] for row in await look.rows("entries", where=where)}
    assert len(notes) == 3
    for text in HOSTILE:
        for position in ((text, WHEN, text), ("notes", WHEN, text), ("secret", WHEN, text)):
            page = await look.page("entries", where=where, after=as_cursor(ENTRIES, "namespace", where, position))
            assert {row["id"] for row in page} <= notes
            everywhere = as_cursor(ENTRIES, "namespace", {}, position)
            assert {row["namespace"] for row in await look.page("entries", after=everywhere)} <= {"notes", "secret"}
    assert (await look.count("entries")).rows == 4
