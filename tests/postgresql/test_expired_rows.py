"""Expired rows are deleted in batches, even where a moment says little about them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Thread

import psycopg
import pytest

from firefly_memory import MemoryEntry, PostgreSQLStore
from firefly_memory.entries import store_operations
from tests.support.backends import Place

PAST = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["psycopg", "asyncpg"])
def store(request: pytest.FixtureRequest, place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgreSQLStore]:
    monkeypatch.setattr(store_operations, "CLEANUP_BATCH", 2)
    with PostgreSQLStore(place.with_driver(request.param), schema_name="expired") as store:
        store.clear("n")
        yield store


def left(place: Place) -> set[str]:
    with psycopg.connect(place.postgresql()) as connection:
        return {row[0] for row in connection.execute("SELECT entry_id FROM expired.memory_entries").fetchall()}


async def test_rows_of_one_moment_and_of_moments_beyond_python_are_deleted(
    store: PostgreSQLStore, place: Place
) -> None:
    moments = [*[PAST] * 5, *[PAST + timedelta(seconds=number) for number in range(5)]]
    await store.async_save_many("n", [MemoryEntry(expires_at=moment) for moment in moments])
    await store.async_save_many("n", [MemoryEntry(entry_id=name, expires_at=PAST) for name in "abcd"])
    await store.async_save("n", MemoryEntry(entry_id="stays", expires_at=datetime.max.replace(tzinfo=UTC)))
    with psycopg.connect(place.postgresql()) as connection:
        connection.execute(
            "UPDATE expired.memory_entries SET expires_at = '-infinity' WHERE entry_id IN ('a', 'b', 'c')"
        )
        connection.execute("UPDATE expired.memory_entries SET expires_at = '0044-03-15 BC' WHERE entry_id = 'd'")
    assert await store.cleanup_expired() == 14
    assert left(place) == {"stays"}


def test_an_expiry_that_is_put_off_meanwhile_counts(store: PostgreSQLStore, place: Place) -> None:
    store.save_many("n", [MemoryEntry(entry_id=name, expires_at=PAST) for name in "abc"])
    deleted: list[int] = []
    cleanup = Thread(target=lambda: deleted.append(store.cleanup_expired_sync()))
    with psycopg.connect(place.postgresql()) as other, psycopg.connect(place.postgresql(), autocommit=True) as watching:
        other.execute("UPDATE expired.memory_entries SET expires_at = 'infinity' WHERE entry_id = 'a'")
        cleanup.start()
        waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
        while watching.execute(waiting).fetchone() is None:
            assert cleanup.is_alive()
        other.commit()
    cleanup.join()
    assert deleted == [2]
    assert left(place) == {"a"}
