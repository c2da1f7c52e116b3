"""Work that is interrupted while it waits for the n-th time, and what it must not leave behind."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def interrupted(work: Coroutine[Any, Any, T], at: int, interrupt: Callable[[], object]) -> Generator[Any, Any, T]:
    """Await ``work``, and call ``interrupt`` when it begins to wait for the ``at``-th time."""
    step: Callable[[], Any] = partial(work.send, None)
    waits = 0
    while True:
        try:
            waits_for = step()
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        waits += 1
        if waits == at:
            interrupt()
        try:
            yield waits_for
            step = partial(work.send, None)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is for the work
            step = partial(work.throw, error)


async def cancelled_at(wait: int, work: Coroutine[Any, Any, T]) -> T:
    """``work`` in a task of its own, which is cancelled when it waits for the ``wait``-th time."""

    async def task() -> T:
        return await interrupted(work, wait, cancel_this_task)

    return await asyncio.ensure_future(task())


def cancel_this_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


def tasks_left() -> set[asyncio.Task[Any]]:
    """The tasks that still run, but for this one and those that look after a client of PyMongo."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    return {task for task in others if "/pymongo/" not in _file_of(task)}


def _file_of(task: asyncio.Task[Any]) -> str:
    return str(getattr(getattr(task.get_coro(), "cr_code", None), "co_filename", ""))
