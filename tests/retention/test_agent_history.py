"""Agent history that is out of bounds: the records of each scope apart, on every backend that keeps it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from firefly_memory import EntryStore
from firefly_memory.agent_history import retention as pruning
from firefly_memory.agent_history.log import AGENT_HISTORY_LOG, HistoryEntry, HistoryLog, HistoryRecord
from firefly_memory.retention import async_prune, prune
from firefly_memory.testing import Mode
from firefly_memory.testing.clock import stopped
from tests.retention.conftest import store_of
from tests.support.backends import Place

pytestmark = pytest.mark.thorough

START = datetime(2024, 5, 6, tzinfo=UTC)
SCOPES = ["ann", None, "bob"]
COUNT = 9


@pytest.fixture(params=["sqlite", "asyncpg", "psycopg", "mongodb"])
async def store(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[EntryStore]:
    """Nine records of three scopes, a day between them; their ids are in another order."""
    async with store_of(request.param, place) as store:
        await empty(log_of(store))
        for day in range(COUNT):
            await write(log_of(store), day)
        yield store
        await empty(log_of(store))


def log_of(store: EntryStore) -> HistoryLog:
    return store.suspending.log(AGENT_HISTORY_LOG)


async def empty(log: HistoryLog) -> None:
    for record in await log.records(None, None):
        await log.delete(record.conversation_id, record.revision)


async def write(log: HistoryLog, day: int, revision: str = "r1", expected: str | None = None) -> None:
    name, made = f"{day * 4 % COUNT} of day {day}", START + timedelta(days=day)
    entry = HistoryEntry(f"{name} {revision}", None, "request", "{}")
    scope = SCOPES[day % 3]
    record = HistoryRecord(name, revision, entry.entry_id, scope, None, None, [], "{}", None, made, 1)
    assert await log.write(record, [entry], expected)


async def left(store: EntryStore) -> list[int]:
    return sorted(int(record.conversation_id[-1]) for record in await log_of(store).records(None, None))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("page", [2, 200])
@pytest.mark.parametrize(
    ("bounds", "stays"),
    [
        ({"older_than": "3d"}, [6, 7, 8]),
        ({"keep_last": 1}, [6, 7, 8]),
        ({"keep_last": 2}, [3, 4, 5, 6, 7, 8]),
        ({"keep_last": 3}, [*range(COUNT)]),
        ({"keep_last": 2, "older_than": "4d"}, [5, 6, 7, 8]),
        ({"keep_last": 1, "owner": "ann"}, [1, 2, 4, 5, 6, 7, 8]),
        ({"older_than": "1d", "owner": "bob"}, [0, 1, 3, 4, 6, 7, 8]),
        ({"max_tokens": 1}, [*range(COUNT)]),
    ],
    ids=str,
)
async def test_the_newest_records_stay(
    store: EntryStore, bounds: Any, stays: list[int], page: int, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "PAGE", page)
    with stopped(START + timedelta(days=9)):
        assert (await async_prune(store, dry_run=True, **bounds)).rows.get("agent-history", 0) == COUNT - len(stays)
        assert await left(store) == [*range(COUNT)]
        pruned = prune(store, **bounds) if mode is Mode.BLOCKING else await async_prune(store, **bounds)
    assert await left(store) == stays
    assert pruned.rows.get("agent-history", 0) == COUNT - len(stays)


async def test_a_record_that_is_written_meanwhile_stays(store: EntryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = pruning.HistoryPruner.delete

    async def write_and_delete(pruner: Any, doomed: Any) -> Any:
        await write(log_of(store), 1, "r2", "r1")
        return await delete(pruner, doomed)

    monkeypatch.setattr(pruning.HistoryPruner, "delete", write_and_delete)
    with stopped(START + timedelta(days=9)):
        pruned = await async_prune(store, older_than="3d")
    assert await left(store) == [1, 6, 7, 8]
    assert pruned.rows["agent-history"] == 5
