"""R12 for SQLite: damaged, locked and foreign files raise one clear error, and nothing is lost."""

from __future__ import annotations

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from firefly_memory import (
    CorruptDataError,
    DatabaseStoreError,
    MemoryEntry,
    SchemaMismatchError,
    SQLiteStore,
    StoreTimeoutError,
)
from tests.support.durations import quickest


def test_a_truncated_database_is_never_reset(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        store.save_many("n", [MemoryEntry(content="x" * 500) for _ in range(500)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    store = SQLiteStore(path)
    for use in (lambda: store.load("n"), lambda: store.save("n", MemoryEntry()), store.initialize_sync):
        with pytest.raises(CorruptDataError) as caught:
            use()
        assert str(path) in caught.value.where
    store.close_sync()
    assert path.read_bytes() == whole[: len(whole) // 2]


def test_a_file_that_is_no_database_is_never_reset(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(b"this is a letter, not a database" * 100)
    store = SQLiteStore(path)
    with pytest.raises(CorruptDataError, match=r"memory\.db.*left as it is"):
        store.save("n", MemoryEntry())
    store.close_sync()
    assert path.read_bytes() == b"this is a letter, not a database" * 100


@pytest.mark.parametrize(
    ("column", "value"),
    [("content", "{"), ("content", '{"~int": "zz"}'), ("metadata", "[]"), ("scope", "x"), ("created_at", "2024-01-01"),
     ("created_at", "soon"), ("expires_at", "never"), ("content", b"\xff")],
)  # fmt: skip
def test_a_damaged_row_is_named_and_the_others_are_still_there(column: str, value: object, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        store.save("n", MemoryEntry(entry_id="damaged", key="damaged"))
        store.save("n", MemoryEntry(entry_id="whole", key="whole", content="whole"))
        connection = sqlite3.connect(path)
        statement = f"UPDATE memory_entries SET {column} = ? WHERE entry_id = 'damaged'"
        connection.execute(statement, (value,))
        connection.commit()
        with pytest.raises(CorruptDataError, match="'damaged' in namespace 'n'"):
            store.load("n")
        found = store.load_by_key("n", "whole")
        assert found is not None
        assert found.content == "whole"
        stored = connection.execute(f"SELECT {column} FROM memory_entries WHERE entry_id = 'damaged'").fetchone()
        assert stored == (value,), "left as it is"
        connection.close()


def held(path: Path) -> tuple[sqlite3.Connection, threading.Timer]:
    """The file's write lock in other hands, which let go of it by themselves a little later."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    return connection, threading.Timer(0.5, lambda: connection.execute("COMMIT"))


def test_a_call_waits_for_a_locked_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path) as store:
        store.save("n", MemoryEntry())
        connection, release = held(path)
        release.start()
        store.save("n", MemoryEntry())
        store.save_many("n", [MemoryEntry(), MemoryEntry()])
        release.join()
        connection.close()
        assert store.count("n") == 4


def test_a_file_that_stays_locked_ends_in_a_time_out(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path, timeout=0.1) as store:
        store.save("n", MemoryEntry())
        connection, _ = held(path)
        with pytest.raises(StoreTimeoutError, match="kept the file locked") as caught:
            store.save("n", MemoryEntry())
        assert caught.value.retryable
        with pytest.raises(StoreTimeoutError):
            store.save_many("n", [MemoryEntry(), MemoryEntry()])
        assert store.count("n") == 1, "readers do not wait"
        connection.execute("COMMIT")
        connection.close()
        store.save("n", MemoryEntry())
        assert store.count("n") == 2


def test_writers_of_one_process_wait_in_turn_until_the_time_out(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path, timeout=0.3) as store, ThreadPoolExecutor(16) as threads:
        store.save("n", MemoryEntry())
        connection, _ = held(path)

        def all_together() -> float:
            started = time.monotonic()
            waiting = [threads.submit(store.save, "n", MemoryEntry()) for _ in range(16)]
            assert {type(each.exception()) for each in waiting} == {StoreTimeoutError}
            return time.monotonic() - started

        one_after_the_other = 16 * 0.3
        assert quickest(all_together, enough=one_after_the_other / 3) < one_after_the_other / 3
        connection.execute("COMMIT")
        connection.close()
        store.save("n", MemoryEntry())


def test_a_missing_table_is_reported_and_a_new_file_is_created(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "memory.db"
    with SQLiteStore(path) as store:
        store.save("n", MemoryEntry())
        connection = sqlite3.connect(path)
        connection.execute("DROP TABLE memory_entries")
        connection.close()
        with pytest.raises(SchemaMismatchError, match="firefly-memory db upgrade"):
            store.load("n")


def test_a_foreign_table_of_the_same_name_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE memory_entries (something TEXT)")
    connection.close()
    store = SQLiteStore(path)
    with pytest.raises(DatabaseStoreError, match="no revision is recorded"):
        store.initialize_sync()
    store.close_sync()


def test_a_conflicting_index_is_named(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (something TEXT)")
    connection.execute("CREATE INDEX idx_namespace_order ON other (something)")
    connection.close()
    store = SQLiteStore(path)
    with pytest.raises(DatabaseStoreError, match=r"index idx_namespace_order already exists; .* rename it"):
        store.initialize_sync()
    store.close_sync()


def test_the_option_synchronous_sets_the_durability_of_a_file(tmp_path: Path) -> None:
    for synchronous, expected in (("FULL", 2), ("NORMAL", 1), ("extra", 3)):
        with SQLiteStore(tmp_path / f"{synchronous}.db", synchronous=synchronous) as store:
            store.save("n", MemoryEntry())
            assert pragma(store, "synchronous") == expected
            assert pragma(store, "journal_mode") == "wal"


def pragma(store: SQLiteStore, name: str) -> object:
    from firefly_memory.databases.sql.sqlite.database import SQLiteDatabase

    assert isinstance(store.database, SQLiteDatabase)
    assert store.database._pool is not None
    connection = store.database._pool.engine.raw_connection()
    try:
        return connection.cursor().execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        connection.close()
