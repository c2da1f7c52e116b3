"""Sync and async, written once: how a blocking caller runs a coroutine that never suspends."""

from __future__ import annotations

import threading
from collections.abc import Coroutine
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar

from firefly_memory.concurrency.process_fork import ForkAware

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

T = TypeVar("T")


def run_without_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run ``coroutine`` to its end here and now: no event loop, no thread.

    Only for coroutines made of a store's ``blocking`` view, whose methods never suspend.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking call tried to suspend: it awaited something that is not a blocking view")


async def result_of(result: Any) -> Any:
    """``result`` of a call of either mode: awaited if there is something to await."""
    return await result if isawaitable(result) else result


class LoopThread(ForkAware):
    """An event loop in a thread of its own, for blocking callers who have a coroutine that does suspend, such as a
    user's asynchronous function. One loop for all of them: clients such a function keeps belong to their loop."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        self.watch_forks()

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()
        self._loop: AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run ``coroutine`` to its end, also inside a running event loop, which waits meanwhile."""
        import asyncio

        if threading.current_thread() is self._thread:  # waiting for this loop in this loop would take for ever
            other = LoopThread()
            try:
                return other.run(coroutine)
            finally:
                other.stop()
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="firefly-memory-loop", daemon=True)
                self._thread.start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def stop(self) -> None:
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


in_a_loop = LoopThread()
"""The process's own."""
