"""Who may edit a namespace: one at a time among the threads and event loops of this process, whatever their stores."""

from __future__ import annotations

import asyncio
import threading
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from firefly_memory.concurrency.cancellation import stop_if_given_up
from firefly_memory.concurrency.process_fork import ForkAware
from firefly_memory.errors import StoreTimeoutError

LOCK_TIMEOUT = 30.0
"""Seconds that somebody waits: the backend of whoever is at work may hang."""

_LOCKS = 64  # which namespaces share by hash
_PAUSE = 0.001  # seconds until a task asks again
_LOOK_UP = 0.05  # seconds until a thread looks whether it is still waited for


def _check(deadline: float) -> None:
    if time.monotonic() >= deadline:
        reason = f"others of this process were at work on the namespace for {LOCK_TIMEOUT:g} seconds"
        raise StoreTimeoutError("edit", reason, retryable=True)


class _Lock:
    def __init__(self) -> None:
        self.held = threading.Lock()
        self.thread: int | None = None
        """Where the task or function that holds it is running."""

    def acquire(self, timeout: float) -> bool:
        acquired = self.held.acquire(timeout=timeout)
        if acquired:
            self.thread = threading.get_ident()
        return acquired

    def release(self) -> None:
        self.thread = None
        self.held.release()


class _Locks(ForkAware):
    def __init__(self) -> None:
        self.after_fork_in_child()
        self.watch_forks()

    def after_fork_in_child(self) -> None:
        self._locks = [_Lock() for _ in range(_LOCKS)]

    def of(self, namespace: str) -> _Lock:
        return self._locks[zlib.crc32(namespace.encode()) % _LOCKS]


_locks = _Locks()


@asynccontextmanager
async def alone_at_once(namespace: str) -> AsyncIterator[None]:
    """Wait without suspending."""
    lock = _locks.of(namespace)
    deadline = time.monotonic() + LOCK_TIMEOUT
    while not lock.acquire(_LOOK_UP):
        stop_if_given_up()
        _check(deadline)
        if lock.thread == threading.get_ident():
            # A task of this thread's loop, which cannot go on before we do: as if it were in another process.
            yield
            return
    try:
        yield
    finally:
        lock.release()


@asynccontextmanager
async def alone_in_turn(namespace: str) -> AsyncIterator[None]:
    """Wait in an event loop."""
    lock = _locks.of(namespace)
    deadline = time.monotonic() + LOCK_TIMEOUT
    while not lock.acquire(0):  # it may be released in another loop, or in a thread
        _check(deadline)
        await asyncio.sleep(_PAUSE)
    try:
        yield
    finally:
        lock.release()
