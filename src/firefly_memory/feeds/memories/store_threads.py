"""A thread for each message store whose methods block."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import finalize

from firefly_memory.concurrency.cancellation import in_worker_thread
from firefly_memory.concurrency.process_fork import ForkAware, ForkSafeLock

T = TypeVar("T")


class _OneThreadEach(ForkAware):
    """The threads, by the id of the store.

    A store has one thread, whichever memory calls it: its methods need not be safe for several threads at once, and the
    calls of one task after the other keep their order.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._threads: dict[int, ThreadPoolExecutor] = {}
        self._kept: list[object] = []
        """Stores of which nobody can be notified when they are gone: their ids must not be given to others."""
        self.watch_forks()

    def of(self, store: object) -> ThreadPoolExecutor:
        with self._lock:
            found = self._threads.get(id(store))
            if found is None:
                found = self._threads[id(store)] = ThreadPoolExecutor(1, "firefly-memory-messages")
                try:
                    finalize(store, self._threads.pop, id(store), None).atexit = False
                except TypeError:
                    self._kept.append(store)
            return found

    def after_fork_in_child(self) -> None:
        self._threads.clear()  # a child has none of its parent's threads


_threads = _OneThreadEach()


async def in_thread_of(store: object, call: Callable[[], T]) -> T:
    """Await ``call`` in the thread of a store. When this ends, so has the call, also if the task is cancelled."""

    def called() -> T:
        try:
            return call()
        except StopIteration as exc:  # nothing could be awaited that raises this
            raise RuntimeError("a method of the message store raised StopIteration") from exc

    return await in_worker_thread(called, _threads.of(store))
