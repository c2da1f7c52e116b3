"""Things that belong to one event loop: connections of asynchronous drivers cannot be used from another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread, current_thread
from typing import Any, Generic, TypeVar
from weakref import finalize

from firefly_memory.concurrency.process_fork import ForkAware

T = TypeVar("T")

Cut = Callable[[T, asyncio.AbstractEventLoop], None]
"""Ends a thing of a loop that does not run."""


@dataclass(frozen=True, slots=True)
class _Kept(Generic[T]):
    thing: T
    closer: AsyncGenerator[None, None]
    thread: Thread
    """In which the loop ran."""


_Things = dict[asyncio.AbstractEventLoop, _Kept[T]]

_abandoned: list[object] = []
"""What a forked child inherited: kept, for ending it properly would end it for the parent as well."""


class PerLoop(ForkAware, Generic[T]):
    """One thing for each event loop it is used from, made on first use and closed before its loop ends.

    A loop that is closed without ``shutdown_asyncgens()`` tells nobody, nor does one whose thread ends. What belonged
    to it is then given to ``cut``, which has to do without a loop, when this is next asked for something, is closed or
    is no longer needed itself. So is what belongs to loops at rest when this is closed.
    """

    def __init__(
        self, make: Callable[[], T], close: Callable[[T], Awaitable[None]] | None = None, cut: Cut[T] | None = None
    ) -> None:
        """``close`` and ``cut`` for things that have something to close."""
        self._make = make
        self._close = close
        self._cut = cut
        self._things: _Things[T] = {}
        if cut is not None:
            finalize(self, _cut_ended, self._things, cut)
        self.watch_forks()

    def is_in_use(self) -> bool:
        """Whether a loop has a thing that was not closed yet."""
        return any(not loop.is_closed() for loop in list(self._things))

    def get(self) -> T:
        """The running loop's own."""
        loop = asyncio.get_running_loop()
        found = self._things.get(loop)
        if found is None:
            _cut_ended(self._things, self._cut)
            thing = self._make()
            closer = _closer(self._things, loop, self._close)
            found = self._things[loop] = _Kept(thing, closer, current_thread())
        return found.thing

    async def close(self) -> None:
        """Close what belongs to the running loop, and ask other running loops to close theirs."""
        here = asyncio.get_running_loop()
        self.close_elsewhere(here)
        found = self._things.get(here)
        if found is not None:
            await found.closer.aclose()

    def close_elsewhere(self, here: asyncio.AbstractEventLoop | None = None) -> None:
        """Ask the loops that run in other places than ``here`` to close theirs, and do it for those at rest."""
        _cut_ended(self._things, self._cut, at_rest=True)
        for loop, kept in list(self._things.items()):
            if loop is not here and loop.is_running():
                loop.call_soon_threadsafe(_close_soon, loop, kept.closer)

    def after_fork_in_child(self) -> None:
        _abandoned.append(self._things.copy())
        self._things.clear()


def _closer(
    things: _Things[T], loop: asyncio.AbstractEventLoop, close: Callable[[T], Awaitable[None]] | None
) -> AsyncGenerator[None, None]:
    # A loop tells of its end only to asynchronous generators: it closes those that were started in it and are still
    # waiting at a ``yield``, as asyncio.run() does before it closes the loop.
    async def until_the_loop_ends() -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            kept = things.pop(loop, None)
            if kept is not None and close is not None:
                await close(kept.thing)

    generator = until_the_loop_ends()
    with suppress(StopIteration):
        generator.__anext__().send(None)
    return generator


def _cut_ended(things: _Things[T], cut: Cut[T] | None, *, at_rest: bool = False) -> None:
    """Drop what belongs to loops that have ended without telling, or are at rest."""
    for loop, kept in list(things.items()):
        if loop.is_running() or not (loop.is_closed() or at_rest or not kept.thread.is_alive()):
            continue
        if things.pop(loop, None) is None:
            continue  # another thread is at it
        if cut is not None:
            with suppress(RuntimeError), _transports_end(loop):  # other kinds of loop may refuse all the same
                cut(kept.thing, loop)
        with suppress(RuntimeError, StopIteration):
            kept.closer.aclose().send(None)  # there is nothing left to close, and nobody has to be told


@contextmanager
def _transports_end(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let the transports of a loop that does not run be aborted: they want to be called by it once more."""

    def call(callback: Callable[..., Any], *args: Any, **_: Any) -> None:
        if isinstance(getattr(callback, "__self__", None), asyncio.BaseTransport):
            callback(*args)

    loop.call_soon = call  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        del loop.call_soon


_closing: set[asyncio.Task[None]] = set()


def _close_soon(loop: asyncio.AbstractEventLoop, generator: AsyncGenerator[None, None]) -> None:
    async def close() -> None:
        await generator.aclose()

    task = loop.create_task(close())
    _closing.add(task)
    task.add_done_callback(_closing.discard)


def abandon(thing: object) -> None:
    """Keep ``thing`` alive, and unused, for the rest of a forked child's life."""
    _abandoned.append(thing)
