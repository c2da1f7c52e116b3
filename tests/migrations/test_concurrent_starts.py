"""Concurrent starts of stores, and migrations that hang or fail: nothing is left half done."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from firefly_memory import MemoryEntry, PostgreSQLStore, SQLiteStore, StoreTimeoutError
from tests.support.alembic_command import alembic, done
from tests.support.backends import Place
from tests.support.databases import execute
from tests.support.schema_objects import catalogue


def test_many_stores_can_start_at_once_on_an_empty_database(postgresql: str, tmp_path: Path) -> None:
    """Threads with stores of their own, as replicas would be; processes are in entries/test_processes.py."""

    def start(number: int) -> None:
        with PostgreSQLStore(postgresql) as store:
            store.save("n", MemoryEntry(content=number))
        with SQLiteStore(tmp_path / "shared.db") as sqlite:
            sqlite.save("n", MemoryEntry(content=number))

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(start, range(16)))
    with PostgreSQLStore(postgresql) as store, SQLiteStore(tmp_path / "shared.db") as other:
        assert store.count("n") == other.count("n") == 16


async def test_stores_that_start_at_once_in_one_process_do_not_mix_up_their_migrations(
    place: Place, tmp_path: Path
) -> None:
    """Alembic keeps what it works on in globals."""
    names = [f"at_once_{uuid4().hex[:8]}" for _ in range(4)]
    stores = [
        *[PostgreSQLStore(place.postgresql(), schema_name=name) for name in names],
        *[SQLiteStore(tmp_path / f"{name}.db") for name in names],
    ]
    async with asyncio.timeout(60):
        await asyncio.gather(*[store.async_save("n", MemoryEntry(content=repr(store))) for store in stores])
    for store in stores:
        assert [entry.content for entry in store.load("n")] == [repr(store)]
        await store.close()
    execute(place.postgresql(), "".join(f"DROP SCHEMA {name} CASCADE;" for name in names))


def test_waiting_for_another_migrator_ends_in_a_time_out(postgresql: str) -> None:
    from firefly_memory.databases.sql.schema.migration_lock import lock_key

    with psycopg.connect(postgresql, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (lock_key("firefly_memory"),))
        with (
            pytest.raises(StoreTimeoutError, match="still migrating") as caught,
            PostgreSQLStore(postgresql, timeout=0.5),
        ):
            pass
        assert caught.value.retryable
    with PostgreSQLStore(postgresql) as store:
        store.save("n", MemoryEntry())


def test_a_failed_migration_is_undone(postgresql: str) -> None:
    """A table in the way of the second statement undoes the first."""
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA firefly_memory")
        connection.execute("CREATE TABLE firefly_memory.idx_namespace_order (id INTEGER)")
    finished = alembic(postgresql, "upgrade", "head")
    assert finished.returncode != 0
    assert "memory_entries" not in str(catalogue(postgresql))
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("DROP TABLE firefly_memory.idx_namespace_order")
    done(postgresql, "upgrade", "head")
