"""R8, atomic, and R9, acknowledged is durable."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.errors import InvalidEntryError
from firefly_memory.protocols import Capability
from firefly_memory.testing.checks import Mode, Subject, check


@check("R8")
async def nothing_of_a_batch_with_a_bad_value_is_saved(subject: Subject) -> None:
    namespace = subject.namespace()
    batch = [MemoryEntry(content=1), MemoryEntry(content=2), MemoryEntry(content=math.nan), MemoryEntry(content=4)]
    try:
        await subject.view.save_many(namespace, batch)
    except InvalidEntryError:
        pass
    else:
        raise AssertionError("should have raised InvalidEntryError")
    assert await subject.contents(namespace) == []


@check("R8")
async def nothing_of_a_batch_that_fails_while_it_is_made_is_saved(subject: Subject) -> None:
    namespace = subject.namespace()

    def batch() -> Iterator[MemoryEntry]:
        yield MemoryEntry(content="made")
        raise LookupError("the rest could not be made")

    try:
        await subject.view.save_many(namespace, batch())
    except LookupError:
        pass
    else:
        raise AssertionError("should have raised LookupError")
    assert await subject.contents(namespace) == []


@check("R8")
async def an_empty_batch_is_fine(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.view.save_many(namespace, [])
    assert await subject.view.delete_many(namespace, []) == 0
    assert await subject.contents(namespace) == []


@check("R8")
async def a_large_batch_is_saved_and_deleted_as_a_whole(subject: Subject) -> None:
    namespace = subject.namespace()
    entries = [MemoryEntry(content=number, key=f"key {number % 10}") for number in range(1_500)]
    await subject.view.save_many(namespace, iter(entries))
    assert await subject.contents(namespace) == list(range(1_500))
    doomed = [entry.entry_id for entry in entries[::3]]
    assert await subject.view.delete_many(namespace, iter([*doomed, "not there", doomed[0]])) == 500
    assert await subject.view.count(namespace) == 1_000


@check("R8")
async def deleting_what_is_not_there_changes_nothing(subject: Subject) -> None:
    namespace = subject.namespace()
    entries = await subject.saved(namespace, 1, 2)
    await subject.view.delete(namespace, "not there")
    await subject.view.delete(namespace, entries[0].entry_id)
    await subject.view.delete(namespace, entries[0].entry_id)
    await subject.view.clear(subject.namespace("empty"))
    assert await subject.contents(namespace) == [2]


@check("R8")
async def clear_leaves_nothing_and_the_namespace_usable(subject: Subject) -> None:
    namespace = subject.namespace()
    await subject.saved(namespace, 1, 2, 3, key="k")
    await subject.view.clear(namespace)
    assert await subject.contents(namespace) == []
    assert await subject.view.load_by_key(namespace, "k") is None
    await subject.saved(namespace, 4)
    assert await subject.contents(namespace) == [4]


@check("R8")
async def a_cancelled_save_leaves_the_old_state_or_the_new(subject: Subject) -> None:
    if subject.mode is Mode.BLOCKING:
        return  # nothing to cancel there
    namespace = subject.namespace()
    states = []
    for pauses in range(12):
        await subject.view.clear(namespace)
        await subject.view.save(namespace, MemoryEntry(entry_id="it", content="old"))
        batch = [MemoryEntry(entry_id="it", content="new"), MemoryEntry(entry_id="more", content="new")]
        saving = subject.view.save_many(namespace, batch)
        if Capability.ATOMIC_BATCHES not in subject.store.capabilities:
            saving.close()
            saving = subject.view.save(namespace, batch[0])
        task = asyncio.create_task(saving)
        for _ in range(pauses):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        states.append(await subject.contents(namespace))
        await subject.view.save(namespace, MemoryEntry(entry_id="after", content="works"))
    assert all(state in (["old"], ["new"], ["new", "new"]) for state in states), states


@check("R8")
async def a_save_that_was_given_up_does_not_undo_a_later_one(subject: Subject) -> None:
    if subject.mode is Mode.BLOCKING:
        return  # nothing to cancel there
    namespace = subject.namespace()
    loop = asyncio.get_running_loop()
    for pauses in range(1, 7):
        with ThreadPoolExecutor(16) as threads:  # to see the end of those that nobody waits for
            loop.set_default_executor(threads)
            crowd = [asyncio.create_task(subject.saved(namespace, number)) for number in range(12)]  # in its way
            given_up = asyncio.create_task(subject.view.save(namespace, MemoryEntry(entry_id="it", content="given up")))
            for _ in range(pauses):
                await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.gather(given_up, return_exceptions=True)
            await subject.view.save(namespace, MemoryEntry(entry_id="it", key="it", content=pauses))
            await asyncio.gather(*crowd)
        loop.set_default_executor(ThreadPoolExecutor())
        found = await subject.view.load_by_key(namespace, "it")
        assert found is not None, "undone by the one that was given up"
        assert found.content == pauses


@check("R9", Capability.DURABLE)
async def another_store_sees_what_was_saved(subject: Subject) -> None:
    namespace = subject.namespace()
    other = subject.another()
    one, two = MemoryEntry(content="one", key="k"), MemoryEntry(content="two")
    await subject.view.save(namespace, one)
    assert await other.load(namespace) == [one]
    await other.save_many(namespace, [two])
    assert await subject.view.load(namespace) == [one, two]
    await other.delete(namespace, one.entry_id)
    assert await subject.view.load_by_key(namespace, "k") is None


@check("R9", Capability.DURABLE)
async def a_closed_store_leaves_everything_behind(subject: Subject) -> None:
    namespace = subject.namespace()
    entries = await subject.saved(namespace, {"a": 1}, "two", None)
    other = subject.another()
    await subject.view.close()
    assert await other.load(namespace) == entries
    await other.clear(namespace)
