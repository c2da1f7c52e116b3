"""Things that belong to one event loop: connections of asynchronous drivers cannot be used from another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from firefly_memory.forks import ForkAware

T = TypeVar("T")

_abandoned: list[object] = []
"""What a forked child inherited: kept, for ending it properly would end it for the parent as well."""


class PerLoop(ForkAware, Generic[T]):
    """One thing for each event loop it is used from, made on first use and closed before its loop ends."""

    def __init__(self, make: Callable[[], T], close: Callable[[T], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._things: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[None, None]]]
        self._things = WeakKeyDictionary()
        self.watch_forks()

    def get(self) -> T:
        """The running loop's own."""
        loop = asyncio.get_running_loop()
        found = self._things.get(loop)
        if found is None:
            thing = self._make()
            found = self._things[loop] = (thing, self._closer(loop, thing))
        return found[0]

    def _closer(self, loop: asyncio.AbstractEventLoop, thing: T) -> AsyncGenerator[None, None]:
        # A loop tells of its end only to asynchronous generators: it closes those that were started in it and are
        # still waiting at a ``yield``, as asyncio.run() does before it closes the loop.
        async def until_the_loop_ends() -> AsyncGenerator[None, None]:
            try:
                yield
            finally:
                self._things.pop(loop, None)
                await self._close(thing)

        generator = until_the_loop_ends()
        with suppress(StopIteration):
            generator.__anext__().send(None)
        return generator

    async def close(self) -> None:
        """Close what belongs to the running loop, and ask other running loops to close theirs."""
        here = asyncio.get_running_loop()
        self.close_elsewhere(here)
        found = self._things.get(here)
        if found is not None:
            await found[1].aclose()

    def close_elsewhere(self, here: asyncio.AbstractEventLoop | None = None) -> None:
        """Ask the loops that run in other places than ``here`` to close theirs; a loop at rest will when it ends."""
        for loop, (_, generator) in list(self._things.items()):
            if loop is not here and loop.is_running():
                loop.call_soon_threadsafe(_close_soon, loop, generator)

    def after_fork_in_child(self) -> None:
        _abandoned.append(self._things)
        self._things = WeakKeyDictionary()


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
