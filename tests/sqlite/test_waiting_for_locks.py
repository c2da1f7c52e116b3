"""Waiting of an SQLite store: one time-out in total, in turn, without delaying forks and readers."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from firefly_memory import MemoryEntry, SQLiteStore, StoreTimeoutError
from firefly_memory.databases.sql.operation import reads
from firefly_memory.databases.sql.session import Session
from firefly_memory.databases.sql.sqlite.database import SQLiteDatabase
from tests.support.durations import quickest


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """The file's write lock in other hands."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("COMMIT")
        connection.close()


def timed_out(store: SQLiteStore) -> tuple[float, StoreTimeoutError]:
    """Save in vain: how long it took, and the error."""
    started = time.monotonic()
    with pytest.raises(StoreTimeoutError) as caught:
        store.save("n", MemoryEntry())
    return time.monotonic() - started, caught.value


def test_waiting_in_turn_and_for_the_lock_share_one_time_out(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path, timeout=1.0) as store, ThreadPoolExecutor(4) as threads:

        def longest() -> float:
            with locked(path):
                attempts = [threads.submit(timed_out, store)]
                half_way = threading.Timer(
                    0.5, lambda: attempts.extend(threads.submit(timed_out, store) for _ in range(3))
                )
                half_way.start()
                half_way.join()
                results = [attempt.result() for attempt in attempts]
            assert min(seconds for seconds, _ in results) > 0.9
            assert {error.operation for _, error in results} == {"save"}
            assert all(error.retryable for _, error in results)
            return max(seconds for seconds, _ in results)

        assert quickest(longest, enough=1.3) < 1.3, "what was waited in turn is not waited for the lock again"
        store.save("n", MemoryEntry())


def test_creating_the_file_keeps_to_the_same_time_out(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (id INTEGER)")
    connection.close()

    def attempt() -> float:
        with locked(path):
            seconds, error = timed_out(SQLiteStore(path, timeout=0.5))
        assert "kept the file locked" in str(error)
        return seconds

    assert quickest(attempt, enough=0.9) < 0.9


def test_a_first_use_waits_for_a_locked_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("CREATE TABLE theirs (id INTEGER)")
    connection.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, lambda: connection.execute("COMMIT"))
    started = time.monotonic()
    release.start()
    with SQLiteStore(path) as store:
        store.save("n", MemoryEntry())
        assert time.monotonic() - started >= 0.3
    release.join()
    connection.close()


def test_readers_can_use_the_only_connection_while_a_writer_waits(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with SQLiteStore(path, pool_size=1, timeout=20) as store, ThreadPoolExecutor(1) as threads:
        store.save("n", MemoryEntry())
        with locked(path):
            saved = threads.submit(store.save, "n", MemoryEntry())
            assert [store.count("n") for _ in range(200)] == [1] * 200
            assert not saved.done(), "readers that waited for the writer would have seen it time out"
        saved.result()
        assert store.count("n") == 2


async def test_asynchronous_calls_wait_like_blocking_ones(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with SQLiteStore(path, timeout=20) as store:
        with locked(path):
            saved = asyncio.ensure_future(store.async_save_many("n", [MemoryEntry(), MemoryEntry()]))
            assert [await store.async_count("n") for _ in range(50)] == [0] * 50
            assert not saved.done()
        await saved
        assert await store.async_count("n") == 2


async def test_a_cancelled_save_that_waited_writes_nothing_later(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with SQLiteStore(path, timeout=20) as store:
        with locked(path):
            saved = asyncio.ensure_future(store.async_save("n", MemoryEntry(content="given up")))
            await store.async_count("n")
            saved.cancel()
            with pytest.raises(asyncio.CancelledError):
                await saved
        await store.async_save("n", MemoryEntry(content="after"))
        assert [entry.content for entry in await store.async_load("n")] == ["after"]


def test_calls_wait_for_a_free_connection_until_the_time_out(tmp_path: Path) -> None:
    started, go_on = threading.Event(), threading.Event()

    @reads
    def keep_the_connection(session: Session) -> None:
        started.set()
        go_on.wait()

    with SQLiteStore(tmp_path / "memory.db", pool_size=1, timeout=0.2) as store, ThreadPoolExecutor(1) as threads:
        assert isinstance(store.database, SQLiteDatabase)
        ready = store.database.ready("count")
        keeping = threads.submit(ready.run, keep_the_connection)
        started.wait()
        with pytest.raises(StoreTimeoutError, match="raise pool_size") as caught:
            store.count("n")
        go_on.set()
        keeping.result()
        assert caught.value.operation == "count"
        assert store.count("n") == 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_does_not_wait_for_a_waiting_writer(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    saving = threading.Event()

    def save() -> None:
        saving.set()
        store.save("n", MemoryEntry(content="in the end"))

    with SQLiteStore(path, timeout=30) as store, ThreadPoolExecutor(1) as threads:
        with locked(path):
            waiting = threads.submit(save)
            saving.wait()
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    os._exit(0)
                os.waitpid(child, 0)
            assert not waiting.done(), "a fork that waited for the writer would have seen it time out"
        waiting.result()
        assert [entry.content for entry in store.load("n")] == ["in the end"]
