"""Rows of every facet, listed page by page, shown, counted and deleted, on every kind of store."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from firefly_memory import (
    ConfigurationError,
    ConversationMemory,
    EntryStore,
    InvalidEntryError,
    MemoryEntry,
    NotSupportedError,
    WorkingMemory,
    clock,
)
from firefly_memory.identifiers import stored_text
from tests.service.conftest import Look

NAMESPACES = ["a", "working", "working9", "working;", "x/y", "z%2F", "\x00", "\U0001f600", "\ud800", "' OR 1=1 --"]
START = datetime(2024, 5, 6, 7, 8, 9, 123_456, UTC)


async def save_everywhere(store: EntryStore) -> None:
    """Three entries in each namespace, two of them made at the same instant."""
    for namespace in NAMESPACES:
        for number in range(3):
            made = START + timedelta(microseconds=number // 2)
            entry = MemoryEntry(
                entry_id=f"{namespace}/{number}", key=f"key {number % 2}", content={"n": number}, created_at=made
            )
            await store.async_save(namespace, entry)
    for scope in ("default", "s/1"):
        facts = WorkingMemory(scope_id=scope, store=store)
        for key in ("colour", "a/b", "%"):
            await facts.async_set(key, [key, 1])


async def talk(store: EntryStore) -> None:
    memory = ConversationMemory(store=store)
    for conversation_id in ("c/1", "c%2F1", "empty"):
        await memory.async_new_conversation(conversation_id)
    for number in range(4):
        for conversation_id in ("c/1", "c%2F1"):
            await memory.async_add_turn(
                conversation_id, f"question {number}", "answer", [{"role": "user", "content": number}]
            )
    await WorkingMemory(store=store, conversation_id="c/1").async_set("topic", "birds")


@pytest.mark.parametrize("limit", [1, 4, 50])
async def test_pages_have_each_row_once_and_in_order(look: Look, store: EntryStore, limit: int) -> None:
    await save_everywhere(store)
    await talk(store)
    entries = await look.rows("entries", limit)
    expected = [
        f"{name.replace('%', '%25').replace('/', '%2F')}/{name}/{number}"
        for name in sorted(NAMESPACES, key=stored_text)
        for number in range(3)
    ]
    assert [row["id"] for row in entries] == expected
    facts = await look.rows("working-facts", limit)
    keys = ["colour", "a/b", "%"]
    scopes = ["conversation:c/1", "default", "s/1"]
    assert [(row["scope"], row["key"]) for row in facts] == [
        (scope, key) for scope in scopes for key in (["topic"] if "c/1" in scope else keys)
    ]
    conversations = [row["id"] for row in await look.rows("conversations", limit)]
    assert conversations == ["empty", "c%2F1", "c/1"]  # the newest first
    turns = await look.rows("turns", limit, {"conversation_id": "c%2F1"})
    assert [row["id"] for row in turns] == [f"c%252F1/{number}" for number in range(4)]
    for kind, rows in {"entries": entries, "working-facts": facts, "turns": turns}.items():
        for row in rows:
            shown = await look.get(kind, row["id"])
            assert shown is not None
            assert row == {name: shown[name] for name in row}
            assert json.loads(json.dumps(shown)) == shown


async def test_a_row_is_shown_with_all_its_fields(look: Look, store: EntryStore) -> None:
    await talk(store)
    turn = await look.get("turns", "c%2F1/2")
    assert turn is not None
    assert (turn["user_prompt"], turn["messages"]) == ("question 2", [{"role": "user", "content": 2}])
    conversation = await look.get("conversations", "c/1")
    assert conversation is not None
    assert (conversation["turns"], conversation["summary"]) == (4, None)
    entry = MemoryEntry(key="k", content={"x": [1, None]}, metadata={"m": 1}, importance=0.25)
    await store.async_save("notes", entry)
    assert await look.get("entries", f"notes/{entry.entry_id}") == {
        "id": f"notes/{entry.entry_id}",
        "namespace": "notes",
        "entry_id": entry.entry_id,
        "scope": "working",
        "key": "k",
        "content": {"x": [1, None]},
        "metadata": {"m": 1},
        "created_at": entry.created_at.isoformat(),
        "expires_at": None,
        "importance": 0.25,
    }


@pytest.mark.parametrize(
    ("kind", "row_id"),
    [
        ("entries", "notes/unknown"),
        ("entries", "unknown/unknown"),
        ("entries", "working:default/unknown"),
        ("working-facts", "default/unknown"),
        ("conversations", "unknown"),
        ("turns", "c%2F1/4"),
        ("turns", "c%2F1/-1"),
        ("turns", "c%2F1/one"),
        ("turns", "c%2F1/99999999999999999999"),
        ("turns", "unknown/0"),
    ],
)
async def test_there_is_no_row_with_an_unknown_id(look: Look, store: EntryStore, kind: str, row_id: str) -> None:
    await talk(store)
    await store.async_save("notes", MemoryEntry())
    assert await look.get(kind, row_id) is None
    if kind != "turns":
        assert await look.delete(kind, [row_id]) == 0


async def test_a_fact_is_no_entry_and_an_entry_no_fact(look: Look, store: EntryStore) -> None:
    await WorkingMemory(store=store).async_set("colour", "green")
    (fact,) = await store.async_load("working:default")
    assert await look.get("entries", f"working:default/{fact.entry_id}") is None
    assert await look.delete("entries", [f"working:default/{fact.entry_id}"]) == 0
    with pytest.raises(InvalidEntryError, match="list working-facts, by their scope"):
        await look.page("entries", where={"namespace": "working:default"})
    assert (await look.count("working-facts")).rows == 1


async def test_an_entry_without_a_key_among_the_facts_is_listed_and_stays(look: Look, store: EntryStore) -> None:
    await store.async_save("working:default", MemoryEntry(content="no fact"))
    await WorkingMemory(store=store).async_set("colour", "green")
    rows = await look.rows("working-facts")
    assert [(row["id"], row["value"]) for row in rows] == [("default/", "no fact"), ("default/colour", "green")]
    assert await look.get("working-facts", "default/") is None
    assert await look.delete("working-facts", where={}) == 1
    assert await look.count("working-facts") == (1, None)


async def test_what_has_expired_does_not_exist(look: Look, store: EntryStore) -> None:
    soon = START + timedelta(hours=1)
    with clock.reading_from(lambda: START):
        await store.async_save("notes", MemoryEntry(entry_id="old", expires_at=soon, key="k"))
        await store.async_save("notes", MemoryEntry(entry_id="new", key="k"))
        await WorkingMemory(store=store).async_set("colour", "green", ttl=3600)
        assert len(await look.rows("entries")) == 2
    with clock.reading_from(lambda: soon):
        for where in ({}, {"namespace": "notes"}, {"namespace": "notes", "key": "k"}, {"metadata~": "{}"}):
            assert [row["entry_id"] for row in await look.rows("entries", where=where)] == ["new"]
            assert (await look.count("entries", where=where)).rows == 1
        assert await look.get("entries", "notes/old") is None
        assert await look.delete("entries", ["notes/old"]) == 0
        assert await look.rows("working-facts") == []
        assert (await look.count("working-facts")).rows == 0
        assert await look.get("working-facts", "default/colour") is None


async def test_counts_of_each_kind(look: Look, store: EntryStore) -> None:
    await save_everywhere(store)
    await talk(store)
    stats = await look.stats()
    assert {kind: stats[kind].rows for kind in ("entries", "working-facts", "conversations", "turns")} == {
        "entries": 3 * len(NAMESPACES),
        "working-facts": 7,
        "conversations": 3,
        "turns": 8,
    }
    tokens = sum(row["tokens"] for row in await look.rows("conversations"))
    assert stats["conversations"].tokens == stats["turns"].tokens == tokens > 0
    assert stats["entries"].tokens is None
    assert (await look.count("entries", where={"namespace": "a"})).rows == 3
    assert (await look.count("entries", where={"namespace": "a", "key": "key 0"})).rows == 2
    assert (await look.count("working-facts", where={"scope": "default"})).rows == 3
    of_one = await look.count("turns", where={"conversation_id": "c/1"})
    assert of_one == (4, tokens // 2)
    assert await look.count("turns", where={"conversation_id": "c/1", "turn_id<": 2}) == (2, tokens // 4)
    assert await look.count("turns", where={"conversation_id": "unknown"}) == (0, 0)


async def test_rows_are_deleted_by_their_ids(look: Look, store: EntryStore) -> None:
    await save_everywhere(store)
    await talk(store)
    entries = [row["id"] for row in await look.rows("entries")]
    assert await look.delete("entries", [entries[0], entries[5], entries[5], "notes/unknown"]) == 2
    assert [row["id"] for row in await look.rows("entries")] == [*entries[1:5], *entries[6:]]
    assert await look.delete("working-facts", ["s%2F1/a/b", "s%2F1/unknown"]) == 1
    assert await WorkingMemory(scope_id="s/1", store=store).async_keys() == ["colour", "%"]
    assert await look.delete("conversations", ["c/1", "unknown"]) == 1
    assert [row["id"] for row in await look.rows("conversations")] == ["empty", "c%2F1"]
    assert await WorkingMemory(store=store, conversation_id="c/1").async_keys() == []
    with pytest.raises(NotSupportedError, match="delete the conversation"):
        await look.delete("turns", ["c%252F1/0"])


async def test_rows_are_deleted_by_a_selection(look: Look, store: EntryStore) -> None:
    await save_everywhere(store)
    assert await look.delete("entries", where={"key": "key 1"}) == len(NAMESPACES)
    assert await look.delete("entries", where={"namespace": "a"}) == 2
    left = await look.rows("entries")
    assert len(left) == 2 * (len(NAMESPACES) - 1)
    assert {row["key"] for row in left} == {"key 0"}
    assert await look.delete("entries", where={}) == len(left)
    assert await look.rows("entries") == []
    assert len(await look.rows("working-facts")) == 6


async def test_a_page_goes_on_after_its_last_row_was_deleted(look: Look, store: EntryStore) -> None:
    await save_everywhere(store)
    rows = await look.rows("entries")
    page = await look.page("entries", limit=4)
    await look.delete("entries", [row["id"] for row in rows[:6]])
    await store.async_save("\x01", MemoryEntry())  # before that place
    assert (await look.page("entries", after=page.next)).rows == tuple(rows[6:])


async def test_what_cannot_be_done_is_said(look: Look) -> None:
    with pytest.raises(ConfigurationError, match="no kind 'feelings'; there are entries, working-facts, conversations"):
        await look.page("feelings")
    with pytest.raises(InvalidEntryError, match="order: of entries is namespace, not 'size'"):
        await look.page("entries", order="size")
    for limit in (0, 1001, "5", True):
        with pytest.raises(InvalidEntryError, match="limit"):
            await look.page("entries", limit=limit)
    with pytest.raises(InvalidEntryError, match="turns are listed by their conversation_id; name it"):
        await look.page("turns")
    with pytest.raises(InvalidEntryError, match="id: of entries is NAMESPACE/ENTRY_ID, not 'notes'"):
        await look.get("entries", "notes")
    with pytest.raises(InvalidEntryError, match="one of the two"):
        await look.delete("entries", ["notes/1"], where={})
    with pytest.raises(InvalidEntryError, match="one of the two"):
        await look.delete("entries")
    with pytest.raises(InvalidEntryError, match="several ids"):
        await look.delete("entries", "notes/1")


async def test_conversations_are_selected_by_owner_and_sorted_by_the_newest_turn(look: Look) -> None:
    memory = ConversationMemory(store=look.store)
    for number, owner in enumerate(("ann", "bob", "ann", None, "ann")):
        await memory.async_add_turn(f"c{number}", "p", "a", owner=owner)
    await memory.async_add_turn("c2", "p", "a")
    rows = await look.rows("conversations", where={"owner": "ann"})
    assert [(row["id"], row["owner"]) for row in rows] == [("c4", "ann"), ("c2", "ann"), ("c0", "ann")]
    found: list[str] = []
    after: str | None = None
    while True:
        page = await look.page("conversations", where={"owner": "ann"}, order="updated", limit=2, after=after)
        found += [row["id"] for row in page]
        after = page.next
        if after is None:
            break
    assert found == ["c2", "c4", "c0"]
    assert [row["id"] for row in await look.page("conversations", order="updated", limit=1)] == ["c2"]
