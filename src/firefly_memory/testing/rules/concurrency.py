"""R10, concurrent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.testing.checks import Mode, Subject, check


async def at_once(subject: Subject, calls: Iterable[Callable[[], Coroutine[Any, Any, Any]]]) -> list[Any]:
    """Make all calls at once: from threads in the blocking mode, as tasks in the other."""
    if subject.mode is Mode.SUSPENDING:
        return await asyncio.gather(*[call() for call in calls])
    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(lambda call: run_without_loop(call()), calls))


@check("R10")
async def two_hundred_saves_at_once_lose_nothing(subject: Subject) -> None:
    namespace = subject.namespace()
    entries = [MemoryEntry(content=number, key=f"key {number % 7}") for number in range(200)]
    await at_once(subject, [lambda entry=entry: subject.view.save(namespace, entry) for entry in entries])  # type: ignore[misc]
    assert await subject.view.load(namespace) == entries


@check("R10")
async def many_writers_of_one_entry_leave_one_entry(subject: Subject) -> None:
    namespace = subject.namespace()

    def write(number: int) -> Callable[[], Coroutine[Any, Any, None]]:
        return lambda: subject.view.save(namespace, MemoryEntry(entry_id="one", content=number))

    await at_once(subject, [write(number) for number in range(40)])
    (entry,) = await subject.view.load(namespace)
    assert entry.content in range(40)


@check("R10")
async def reading_writing_and_deleting_at_once_do_not_collide(subject: Subject) -> None:
    namespace = subject.namespace()
    kept = [MemoryEntry(content=number, key="kept") for number in range(30)]
    doomed = await subject.saved(namespace, *range(30))

    async def turn(number: int) -> None:
        await subject.view.save(namespace, kept[number])
        await subject.view.load_by_key(namespace, "kept")
        await subject.view.delete(namespace, doomed[number].entry_id)
        await subject.view.load_page(namespace, limit=5)

    await at_once(subject, [lambda number=number: turn(number) for number in range(30)])  # type: ignore[misc]
    assert await subject.view.load(namespace) == kept


@check("R10")
async def one_bad_save_among_many_fails_alone(subject: Subject) -> None:
    namespace = subject.namespace()
    entries = [MemoryEntry(content=object() if number == 13 else number) for number in range(30)]

    async def save(entry: MemoryEntry) -> str | None:
        try:
            await subject.view.save(namespace, entry)
        except ValueError as error:
            return type(error).__name__
        return None

    results = await at_once(subject, [lambda entry=entry: save(entry) for entry in entries])  # type: ignore[misc]
    assert results == ["InvalidEntryError" if number == 13 else None for number in range(30)]
    assert await subject.contents(namespace) == [number for number in range(30) if number != 13]
