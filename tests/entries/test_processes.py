"""R9 and R10 with real processes: concurrent starts and writes, kill -9, fork."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from uuid import uuid4

import pytest

from firefly_memory import Capability, MemoryEntry, NotSupportedError, SQLiteStore, adapt
from tests.support.backends import BY_NAME, OWN, Backend, Place
from tests.support.forked_child import in_child
from tests.support.store_worker import killed_after, start, together

pytestmark = pytest.mark.thorough

SHARED = [backend for backend in OWN if Capability.SHARED in backend.capabilities]
PROCESSES = 8
EACH = 25


def on_each(backends: list[Backend]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("backend", backends, ids=str)


@on_each(SHARED)
@pytest.mark.parametrize("work", ["save_many_entries", "save_from_tasks"])
def test_eight_processes_that_write_at_once_lose_nothing(backend: Backend, work: str, place: Place) -> None:
    """They also start at once, where nothing is there yet: on an empty directory, a new file, a new table."""
    namespace = f"shared:{uuid4().hex}"
    together([start(backend, place, work, namespace, f"p{number}", EACH) for number in range(PROCESSES)])
    store = adapt(backend.open(place))
    contents = [tuple(entry.content) for entry in store.load(namespace)]
    expected = {(f"p{process}", number) for process in range(PROCESSES) for number in range(EACH)}
    assert Counter(contents) == Counter(expected)
    for process in range(PROCESSES):
        newest = store.load_by_key(namespace, f"p{process}")
        assert newest is not None
        assert newest.content == [f"p{process}", EACH - 1]
    store.clear(namespace)
    store.close_sync()


@on_each(SHARED)
def test_eight_writers_of_one_entry_leave_one_entry(backend: Backend, place: Place) -> None:
    namespace = f"one:{uuid4().hex}"
    work = "save_one_entry_again_and_again"
    store = adapt(backend.open(place))
    store.save(namespace, MemoryEntry(entry_id="the one"))
    (before,) = store.load(namespace)
    together([start(backend, place, work, namespace, f"p{number}", 10) for number in range(PROCESSES)])
    (entry,) = store.load(namespace)
    assert entry.content[1] == 9, "the last write of the last process won"
    assert entry.created_at == before.created_at
    store.clear(namespace)
    store.close_sync()


@on_each(SHARED)
def test_every_acknowledged_save_survives_kill_9(backend: Backend, place: Place) -> None:
    namespace = f"killed:{uuid4().hex}"
    for _ in range(3):
        worker = start(backend, place, "save_until_killed", namespace)
        acknowledged = [int(line) for line in killed_after(20, worker)]
        store = adapt(backend.open(place))
        batches = Counter(entry.content[0] for entry in store.load(namespace))
        assert set(acknowledged) <= set(batches)
        assert set(batches.values()) == {3}, "a batch is there as a whole or not at all"
        assert len(batches) <= len(acknowledged) + 1
        store.clear(namespace)
        store.close_sync()


@on_each([backend for backend in OWN if Capability.DURABLE in backend.capabilities])
def test_another_process_reads_the_entries_of_this_process(backend: Backend, place: Place) -> None:
    namespace = f"handed over:{uuid4().hex}"
    store = adapt(backend.open(place))
    store.save(namespace, MemoryEntry(content={"to": "the other", "é\x00": [1.5, None]}))
    (printed,) = together([start(backend, place, "load", namespace)])
    assert json.loads(printed) == [{"to": "the other", "é\x00": [1.5, None]}]
    store.clear(namespace)
    store.close_sync()


# Motor's own client may not be used after a fork at all.
@on_each([backend for backend in OWN if backend.name not in ("mongodb-motor", "sqlite-memory")])
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_uses_connections_of_its_own(backend: Backend, place: Place) -> None:
    namespace = f"forked:{uuid4().hex}"
    store = adapt(backend.open(place))
    store.save(namespace, MemoryEntry(content="parent"))

    async def one_by_one() -> None:
        await store.async_save(namespace, MemoryEntry(content="child, asynchronous"))
        await store.close()

    def child() -> None:
        assert [entry.content for entry in store.load(namespace)] == ["parent"]
        store.save(namespace, MemoryEntry(content="child, blocking"))
        asyncio.run(one_by_one())

    assert in_child(child) == 0
    store.save(namespace, MemoryEntry(content="parent again"))
    if Capability.DURABLE in backend.capabilities:
        found = [entry.content for entry in store.load(namespace)]
        assert found == ["parent", "child, blocking", "child, asynchronous", "parent again"]
    store.clear(namespace)
    store.close_sync()


@pytest.mark.parametrize("name", ["file", "sqlite", "postgresql-asyncpg", "mongodb"])
def test_a_child_forked_while_threads_are_saving_is_not_stuck(name: str, place: Place) -> None:
    namespace = f"forked busily:{uuid4().hex}"
    store = adapt(BY_NAME[name].open(place))
    store.initialize_sync()
    done = threading.Event()

    def keep_saving() -> None:
        while not done.is_set():
            store.save(namespace, MemoryEntry(content="thread"))

    threads = [threading.Thread(target=keep_saving) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        codes = [in_child(lambda: store.save(namespace, MemoryEntry(key="child"))) for _ in range(5)]
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert codes == [0] * 5
    assert sum(entry.key == "child" for entry in store.load(namespace)) == 5
    store.clear(namespace)
    store.close_sync()


def test_an_in_memory_sqlite_database_says_that_it_does_not_cross_a_fork() -> None:
    store = SQLiteStore(":memory:")
    store.save("n", MemoryEntry())

    def child() -> None:
        with pytest.raises(NotSupportedError, match="stays with the process"):
            store.load("n")

    assert in_child(child) == 0
    assert store.count("n") == 1
    store.close_sync()
