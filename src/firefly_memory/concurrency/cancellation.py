"""What is brought to its end although the task that waits for it is cancelled.

A thread cannot be stopped from outside. If its caller went on when it is cancelled, the thread might write much later,
over what was saved since. So a cancelled caller goes on when its thread has ended, and the thread ends at the next
point where nothing has been done yet: before it begins, while it waits for a lock, before it writes.
"""

from __future__ import annotations

from asyncio import CancelledError, Event, ensure_future, get_running_loop, shield
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` returns. If this task is cancelled meanwhile, ``CancelledError`` is raised once it is done."""
    task = ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await shield(task)
        except CancelledError:
            cancelled = True
        except BaseException:  # noqa: BLE001, S110 - it is raised below
            pass
    if cancelled:
        raise CancelledError from (None if task.cancelled() else task.exception())
    return task.result()


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """:func:`to_its_end` for code that may run in a cancelled scope of anyio's, as pydantic-ai's does."""
    from anyio import CancelScope  # comes with pydantic-ai

    with CancelScope(shield=True):  # or the scope would cancel the wait again and again
        result = await to_its_end(work)
    return result  # noqa: RET504 - for the type checker, who knows that some scopes swallow errors


class GivenUpError(Exception):
    """Ends a thread whose caller was cancelled. Nobody sees it: the caller gets the ``CancelledError``."""


class _Call(Generic[T]):
    """A function that a worker thread calls, unless it is given up before."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self.begun = False
        self.given_up = False
        self._ended = False
        self._wake: Callable[[], object] | None = None

    def __call__(self) -> T:
        self.begun = True  # before it looks whether it is given up: whoever gives it up looks in the other order
        try:
            _given_up.set(lambda: self.given_up)
            stop_if_given_up()
            return self._function()
        finally:
            self._ended = True  # and here, before it looks whether anybody wants to know
            if self._wake is not None:
                self._wake()

    async def end(self) -> None:
        """Wait for it, whatever happens meanwhile."""
        loop, woken = get_running_loop(), Event()
        self._wake = partial(loop.call_soon_threadsafe, woken.set)
        while not (self._ended or woken.is_set()):
            with suppress(CancelledError):  # it is on its way already
                await woken.wait()


_given_up: ContextVar[Callable[[], bool] | None] = ContextVar("_given_up", default=None)
"""Whether the call that this thread is at work for has been given up."""


async def in_worker_thread(function: Callable[[], T], threads: Executor | None = None) -> T:
    """Await ``function`` in a thread, one of the loop's own or of ``threads``. When this ends, so has the function."""
    call = _Call(function)
    try:
        return await get_running_loop().run_in_executor(threads, copy_context().run, call)
    except CancelledError:
        call.given_up = True
        if call.begun:
            await call.end()
        raise


def stop_if_given_up() -> None:
    """For blocking code, wherever nothing would be left half done: end, if this thread's caller was cancelled."""
    given_up = _given_up.get()
    if given_up is not None and given_up():
        raise GivenUpError
