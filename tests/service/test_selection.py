"""Rows are selected by the fields that their resource declares."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from firefly_memory import ConversationMemory, EntryStore, InMemoryStore, InvalidEntryError, MemoryEntry, service
from firefly_memory.service import rows
from tests.service.conftest import Look

START = datetime(2024, 5, 6, tzinfo=UTC)
NOON = START + timedelta(hours=12)


async def save_notes(store: EntryStore) -> None:
    for number in range(6):
        entry = MemoryEntry(
            entry_id=str(number),
            key=None if number % 2 else f"Key {number}",
            content={"city": ["Paris", "Rome", "Ōsaka"][number % 3]},
            created_at=START + timedelta(hours=6 * number),
            expires_at=None if number else datetime(9999, 1, 1, tzinfo=UTC),
            importance=number / 10,
        )
        await store.async_save("ab"[number % 2], entry)


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({}, "024135"),
        ({"namespace": "b"}, "135"),
        ({"namespace": "a", "key": "Key 2"}, "2"),
        ({"namespace": "a", "key": None}, ""),
        ({"key": None}, "135"),
        ({"namespace~": "B"}, "135"),
        ({"key": "key 2"}, ""),
        ({"key~": "KEY"}, "024"),
        ({"content~": "paris"}, "03"),
        ({"content~": "ōSAKA"}, "25"),
        ({"content~": "city"}, "024135"),
        ({"importance": 0.5}, "5"),
        ({"importance>=": 0.4}, "45"),
        ({"importance<": "0.2"}, "01"),
        ({"importance>=": 0.2, "importance<": 0.4}, "23"),
        ({"created_at": NOON}, "2"),
        ({"created_at>=": "2024-05-06T14:00:00+02:00"}, "2435"),
        ({"created_at<": NOON, "namespace": "b"}, "1"),
        ({"expires_at": None}, "24135"),
        ({"expires_at>=": START}, "0"),
        ({"scope": "working"}, "024135"),
        ({"scope": "long_term"}, ""),
    ],
)
async def test_rows_that_fit(look: Look, store: EntryStore, where: dict[str, Any], ids: str) -> None:
    await save_notes(store)
    for limit in (1, 50):
        assert "".join([row["entry_id"] for row in await look.rows("entries", limit, where)]) == ids
    assert (await look.count("entries", where=where)).rows == len(ids)


async def test_conversations_and_turns_are_selected(look: Look, store: EntryStore) -> None:
    memory = ConversationMemory(store=store)
    for number in range(3):
        for turn in range(number):
            await memory.async_add_turn(f"c{number}", f"question {turn}", "forty-two" if turn else "no")
    assert [row["id"] for row in await look.rows("conversations", where={"turns>=": 2})] == ["c2"]
    assert [row["id"] for row in await look.rows("conversations", where={"conversation_id~": "C1"})] == ["c1"]
    where = {"conversation_id": "c2", "assistant_response~": "FORTY"}
    assert [row["id"] for row in await look.rows("turns", where=where)] == ["c2/1"]
    assert [row["id"] for row in await look.rows("turns", where={"conversation_id": "c2", "turn_id<": 1})] == ["c2/0"]


NOTHING = InMemoryStore()


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"colour": "green"}, "entries cannot be selected by 'colour'; there are namespace, entry_id, scope, key"),
        ({"key=": "k"}, "cannot be selected by 'key='"),
        ({"key ~": "k"}, "cannot be selected by 'key ~'"),
        ({"key; DROP TABLE": "k"}, "cannot be selected by"),
        ({5: "k"}, "cannot be selected by 5"),
        ({"key<": "k"}, "key is text; ask for key or key~, not 'key<'"),
        ({"content": {"a": 1}}, "content is json; ask for content~"),
        ({"key": 5}, r"where\['key'\]: must be text, not int"),
        ({"key": {"$gt": ""}}, "must be text, not dict"),
        ({"content~": None}, "must be text, not NoneType"),
        ({"importance": "much"}, "must be a number, not 'much'"),
        ({"importance": True}, "must be a number, not True"),
        ({"importance>=": None}, "must be a number, not None"),
        ({"created_at": "yesterday"}, "must be an instant with a time zone, such as .*, not 'yesterday'"),
        ({"created_at": "2024-05-06"}, "must be an instant with a time zone"),
        ({"created_at<": datetime(2024, 5, 6)}, "must be an instant with a time zone"),  # noqa: DTZ001
        ({"namespace": ""}, "namespace: must not be empty"),
        ({"namespace": "conversation:x"}, "kept for conversations"),
        ({"namespace": "n" * 513}, "is 513 characters long"),
        (["key"], "must be a mapping"),
    ],
)
def test_what_cannot_be_asked_for_is_said(where: Any, said: str) -> None:
    for ask in (service.list, service.count):
        with pytest.raises(InvalidEntryError, match=said):
            ask(NOTHING, "entries", where=where)


def test_a_page_reads_so_many_rows_and_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_BATCH", 4)
    monkeypatch.setattr(rows, "_READ", 8)
    with InMemoryStore() as store:
        for number in range(20):
            store.save("notes", MemoryEntry(entry_id=f"{number:02}", content="x" if number in (2, 19) else "y"))
        lengths, after = [], None
        while True:
            page = service.list(store, "entries", where={"content~": "x"}, limit=3, after=after)
            lengths.append(len(page))
            after = page.next
            if after is None:
                break
    assert lengths == [1, 0, 1]
