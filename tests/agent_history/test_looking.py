"""Agent history as people look at it, on every backend that keeps it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from firefly_memory import CorruptDataError, service
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG, HistoryEntry, HistoryLog, HistoryRecord
from firefly_memory.stores.base import EntryStore
from tests.support.agent_histories import KINDS, opened, somewhere
from tests.support.backends import Place

KIND = "agent-history"
START = datetime(2024, 5, 6, tzinfo=UTC)
IDS = ["c/1", "c 2", "d", "e", "' OR 1=1"]


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[EntryStore]:
    with somewhere(request.param, place) as where:
        async with opened(request.param, where) as conversations:
            await conversations.store.initialize()
            yield conversations.store


def log_of(store: EntryStore) -> HistoryLog:
    return store.suspending.log(AGENT_HISTORY_LOG)


def record(conversation_id: str, number: int, head_id: str | None) -> HistoryRecord:
    scope = None if number % 2 else "alice"
    made = START + timedelta(microseconds=number)
    return HistoryRecord(conversation_id, "r1", head_id, scope, None, None, [], '{"requests":1}', None, made, 1)


async def write(store: EntryStore, count: int = 3) -> None:
    """Conversations of some messages each."""
    for number, conversation_id in enumerate(IDS):
        ids = [f"{number}/{place}" for place in range(count)]
        entries = [
            HistoryEntry(entry_id, ids[place - 1] if place else None, "request", json.dumps({"text": entry_id}))
            for place, entry_id in enumerate(ids)
        ]
        assert await log_of(store).write(record(conversation_id, number, ids[-1]), entries, None)


@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_pages_have_each_conversation_once(store: EntryStore, limit: int) -> None:
    await write(store)
    found: list[str] = []
    after: str | None = None
    while True:
        page = await service.async_list(store, KIND, limit=limit, after=after)
        found += [row["id"] for row in page]
        after = page.next
        if after is None:
            break
    assert sorted(found) == sorted(IDS)
    everything = await service.async_list(store, KIND)
    assert [row["id"] for row in everything] == found
    of_alice = await service.async_list(store, KIND, where={"scope": "alice"})
    assert {row["id"] for row in of_alice} == set(IDS[::2])


async def test_a_conversation_is_shown_with_its_newest_messages(store: EntryStore) -> None:
    await write(store, count=120)
    row = await service.async_get(store, KIND, "c/1")
    assert row is not None
    messages = row.pop("messages")
    assert row == {
        "id": "c/1",
        "conversation_id": "c/1",
        "scope": "alice",
        "forked_from": None,
        "usage": {"requests": 1},
        "updated_at": START.isoformat(),
    }
    assert messages == [{"text": f"0/{place}"} for place in range(20, 120)]
    assert await service.async_get(store, KIND, "unknown") is None


async def test_conversations_are_counted_and_deleted_with_their_messages(store: EntryStore) -> None:
    await write(store)
    assert await service.async_count(store, KIND) == (5, None)
    assert await service.async_delete(store, KIND, ["c/1", "c/1", "unknown"]) == 1
    assert await service.async_delete(store, KIND, where={"scope": "alice"}) == 2
    assert {each.kind: each.rows for each in await service.async_stats(store)}[KIND] == 2
    left = await log_of(store).entries([f"{number}/0" for number in range(5)])
    assert sorted(entry.entry_id for entry in left) == ["1/0", "3/0"]


async def test_a_damaged_message_is_named(store: EntryStore) -> None:
    entry = HistoryEntry("m", None, "request", "no JSON")
    assert await log_of(store).write(record("c", 0, "m"), [entry], None)
    with pytest.raises(CorruptDataError, match="entry 'm' is damaged"):
        await service.async_get(store, KIND, "c")
