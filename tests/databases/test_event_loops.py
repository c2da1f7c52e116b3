"""One store in many event loops and threads."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from pymongo import MongoClient
from pymongo.network_layer import PyMongoProtocol

from firefly_memory import EntryStore, MemoryEntry, MongoDBStore, PostgreSQLStore, StoreClosedError, adapt
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.mongodb.pymongo_cleanup import cut_client
from tests.support.backends import BY_NAME, OWN, Backend, Place

pytestmark = pytest.mark.thorough

# A Motor client belongs to one event loop, and so does a store made with it.
BACKENDS = [backend for backend in OWN if backend.name != "mongodb-motor"]


async def turn(store: EntryStore, namespace: str, content: object) -> None:
    await store.async_save(namespace, MemoryEntry(content=content))
    await store.async_load_by_key(namespace, "k")


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_a_store_works_in_several_event_loops_in_succession(backend: Backend, place: Place) -> None:
    namespace = f"loops:{uuid4().hex}"
    store = adapt(backend.open(place))
    for number in range(4):
        asyncio.run(turn(store, namespace, number))
        store.save(namespace, MemoryEntry(content=f"blocking {number}"))
    assert store.count(namespace) == 8
    store.clear(namespace)
    store.close_sync()
    gc.collect()  # nothing is left that would complain of not having been closed


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_a_store_works_in_event_loops_of_several_threads_at_once(backend: Backend, place: Place) -> None:
    namespace = f"loops at once:{uuid4().hex}"
    store = adapt(backend.open(place))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: asyncio.run(turn(store, namespace, number)), range(12)))
    assert sorted(entry.content for entry in store.load(namespace)) == list(range(12))
    store.clear(namespace)
    store.close_sync()


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
async def test_a_blocking_call_inside_a_running_loop_works(backend: Backend, place: Place) -> None:
    namespace = f"inside:{uuid4().hex}"
    store = adapt(backend.open(place))
    await store.async_save(namespace, MemoryEntry(content="awaited"))
    store.save(namespace, MemoryEntry(content="blocking"))
    assert [entry.content for entry in store.load(namespace)] == ["awaited", "blocking"]
    assert [entry.content for entry in await store.async_load(namespace)] == ["awaited", "blocking"]
    store.clear(namespace)
    await store.close()


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
async def test_two_hundred_tasks_can_use_a_store_at_once(backend: Backend, place: Place) -> None:
    namespace = f"tasks:{uuid4().hex}"
    async with adapt(backend.open(place)) as store:
        entries = [MemoryEntry(content=number, key=f"key {number % 3}") for number in range(200)]

        async def task(number: int) -> None:
            await store.async_save(namespace, entries[number])
            found = await store.async_load_by_key(namespace, f"key {number % 3}")
            assert found is not None
            if number % 10 == 0:
                await store.async_delete(namespace, entries[number].entry_id)

        await asyncio.gather(*[task(number) for number in range(200)])
        assert await store.async_load(namespace) == [entry for number, entry in enumerate(entries) if number % 10]
        await store.async_clear(namespace)


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_eight_threads_can_use_a_store_at_once(backend: Backend, place: Place) -> None:
    namespace = f"threads:{uuid4().hex}"
    with adapt(backend.open(place)) as store, ThreadPoolExecutor(8) as threads:
        entries = [MemoryEntry(content=number) for number in range(160)]
        list(threads.map(lambda entry: store.save(namespace, entry), entries))
        assert store.load(namespace) == entries
        store.clear(namespace)


@pytest.mark.parametrize("name", ["sqlite", "postgresql-asyncpg", "postgresql-psycopg", "mongodb", "file", "memory"])
async def test_a_store_closed_in_one_mode_is_closed_in_the_other(name: str, place: Place) -> None:
    store = adapt(BY_NAME[name].open(place))
    await store.async_count("n")
    store.count("n")
    store.close_sync()
    with pytest.raises(StoreClosedError):
        await store.async_count("n")
    with pytest.raises(StoreClosedError):
        store.count("n")
    await store.close()


def test_closing_a_store_closes_the_connections_of_loops_in_other_threads(place: Place) -> None:
    store = PostgreSQLStore(place.postgresql())
    loop = asyncio.new_event_loop()
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(loop.run_forever)
        asyncio.run_coroutine_threadsafe(store.async_count("n"), loop).result()
        store.close_sync()

        async def settled() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            await asyncio.gather(*tasks)

        asyncio.run_coroutine_threadsafe(settled(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        running.result()
    loop.close()
    gc.collect()


class Ended:
    """A server, and how many connections it has from stores whose event loops ended."""

    def __init__(self, name: str, place: Place) -> None:
        self.store: EntryStore
        if name == "mongodb":
            self._mongodb: MongoClient[Any] = MongoClient(place.mongodb())
            place.later.callback(self._mongodb.close)
            self.store, self._count = MongoDBStore(place.mongodb()), self._of_mongodb
        else:
            mark = f"loops-{uuid4().hex}"
            connection = psycopg.connect(place.postgresql(), autocommit=True)
            place.later.callback(connection.close)
            self.store = PostgreSQLStore(f"{place.with_driver(name)}?application_name={mark}")
            self._count = partial(self._of_postgresql, connection, mark)
        self.store.initialize_sync()
        self._others = self._count()

    def open(self) -> int:
        return self._count() - self._others

    def gone(self) -> bool:
        return self.falls_to(0)

    def falls_to(self, most: int) -> bool:
        """Whether the server sees all others end, which takes it a moment."""
        deadline = time.monotonic() + 60
        while self.open() > most and time.monotonic() < deadline:
            pass
        return self.open() <= most

    @staticmethod
    def _of_postgresql(connection: psycopg.Connection[Any], mark: str) -> int:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        return int(connection.execute(query, [mark]).fetchone()[0])  # type: ignore[index]

    def _of_mongodb(self) -> int:
        everything: list[Any] = [{"$currentOp": {"allUsers": True, "idleConnections": True}}]
        operations = self._mongodb.admin.aggregate(everything).to_list()
        names = [one.get("clientMetadata", {}).get("application", {}).get("name") for one in operations]
        return names.count("firefly-memory")


_MOST_OF_ONE_LOOP = 3
"""PyMongo has one to work with and two to watch the server, which come when they can."""

ENDED = pytest.mark.parametrize("name", ["asyncpg", "psycopg", "mongodb"])


def used_and_closed(store: EntryStore) -> None:
    """An event loop that ends as most do that people make by hand: without a word to what is in it."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(store.async_count("n"))
    loop.close()


@ENDED
def test_event_loops_that_end_without_closing_leave_no_connections(
    name: str, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    ended = Ended(name, place)
    used_and_closed(ended.store)
    of_one_loop = ended.open()
    assert of_one_loop > 0
    for _ in range(5):
        used_and_closed(ended.store)
    asyncio.run(turn(ended.store, "loops", "and one that says goodbye"))
    ended.store.clear("loops")
    assert ended.gone()
    used_and_closed(ended.store)
    ended.store.close_sync()
    assert ended.gone()
    gc.collect()  # nothing is left that would complain of not having been closed
    assert not [record for record in caplog.records if record.name == "asyncio"]


@ENDED
def test_an_idle_event_loop_that_ends_after_the_store_leaves_no_connections(name: str, place: Place) -> None:
    ended = Ended(name, place)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(ended.store.async_count("n"))
    ended.store.close_sync()
    loop.close()
    del loop, ended.store
    gc.collect()
    assert ended.gone()


@ENDED
def test_threads_that_end_with_their_event_loops_leave_no_connections(
    name: str, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """As servers have them that handle each request in a thread, with a loop that nobody closes."""
    ended = Ended(name, place)
    loops: list[asyncio.AbstractEventLoop] = []

    def request() -> None:
        loops.append(asyncio.new_event_loop())
        loops[-1].run_until_complete(ended.store.async_count("n"))

    def requests(count: int) -> None:
        for _ in range(count):
            thread = threading.Thread(target=request)
            thread.start()
            thread.join()

    requests(7)
    assert ended.falls_to(_MOST_OF_ONE_LOOP)
    ended.store.close_sync()
    assert ended.gone()
    for loop in loops:
        loop.run_until_complete(asyncio.sleep(0))  # what is left in it would be found now
        loop.close()
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_an_unstarted_pymongo_task_is_ended_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.new_event_loop()
    nobody: Any = None
    task = loop.create_task(PyMongoProtocol.write(nobody, b"hello"))
    cut_client(SimpleNamespace(), loop)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert task.done()
    del task
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]


@ENDED
def test_a_closed_store_leaves_no_connections_in_an_idle_event_loop(name: str, place: Place) -> None:
    ended = Ended(name, place)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(ended.store.async_count("n"))
    ended.store.close_sync()
    assert ended.gone()
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    gc.collect()


async def test_the_sync_bridge_refuses_a_coroutine_that_suspends() -> None:
    with pytest.raises(RuntimeError, match="tried to suspend"):
        run_without_loop(asyncio.sleep(0, "never"))
