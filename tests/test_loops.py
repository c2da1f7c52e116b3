"""One store, many event loops and threads: what users never have to think about."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from firefly_memory import EntryStore, MemoryEntry, PostgreSQLStore, StoreClosedError, adapt
from firefly_memory.colours import finish
from tests.backends import BY_NAME, OWN, Backend, Place

# A Motor client belongs to one event loop, and so does a store made with it.
BACKENDS = [backend for backend in OWN if backend.name != "mongodb-motor"]


async def turn(store: EntryStore, namespace: str, content: object) -> None:
    await store.async_save(namespace, MemoryEntry(content=content))
    await store.async_load_by_key(namespace, "k")


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
def test_several_event_loops_one_after_another(backend: Backend, place: Place) -> None:
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
def test_event_loops_in_threads_at_once(backend: Backend, place: Place) -> None:
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
async def test_two_hundred_tasks_at_once(backend: Backend, place: Place) -> None:
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
def test_eight_threads_at_once(backend: Backend, place: Place) -> None:
    namespace = f"threads:{uuid4().hex}"
    with adapt(backend.open(place)) as store, ThreadPoolExecutor(8) as threads:
        entries = [MemoryEntry(content=number) for number in range(160)]
        list(threads.map(lambda entry: store.save(namespace, entry), entries))
        assert store.load(namespace) == entries
        store.clear(namespace)


@pytest.mark.parametrize("name", ["sqlite", "postgresql-asyncpg", "postgresql-psycopg", "mongodb", "file", "memory"])
async def test_a_store_closed_in_one_colour_is_closed_in_the_other(name: str, place: Place) -> None:
    store = adapt(BY_NAME[name].open(place))
    await store.async_count("n")
    store.count("n")
    store.close_sync()
    with pytest.raises(StoreClosedError):
        await store.async_count("n")
    with pytest.raises(StoreClosedError):
        store.count("n")
    await store.close()


def test_a_loop_that_is_running_elsewhere_closes_its_connections_when_asked(place: Place) -> None:
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


async def test_a_coroutine_that_suspends_is_no_blocking_call() -> None:
    with pytest.raises(RuntimeError, match="tried to suspend"):
        finish(asyncio.sleep(0, "never"))
