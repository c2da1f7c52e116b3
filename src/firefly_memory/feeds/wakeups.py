"""Wakes the subscribers of this process when this process has appended a message.

A wake-up only says that a subscriber should look. It reads the messages from the store by number. So a needless wake-up
costs one look, and after a lost one the next look finds the message.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from firefly_memory.concurrency.process_fork import ForkSafeLock

_Waiter = tuple[asyncio.AbstractEventLoop, asyncio.Event]

_lock = ForkSafeLock()
_waiting: defaultdict[str, set[_Waiter]] = defaultdict(set)
"""By location. Two stores with the same location are rare; their subscribers look too often."""


@contextmanager
def waiting_for(location: str) -> Iterator[asyncio.Event]:
    """An event of the running event loop that is set whenever this process has written to ``location``."""
    waiter = asyncio.get_running_loop(), asyncio.Event()
    with _lock:
        _waiting[location].add(waiter)
    try:
        yield waiter[1]
    finally:
        with _lock:
            _waiting[location].discard(waiter)
            if not _waiting[location]:
                del _waiting[location]


def wake(location: str) -> None:
    """Set the events of those who wait for ``location``, from any thread."""
    if location not in _waiting:
        return
    with _lock:
        waiters = list(_waiting.get(location, ()))
    for loop, event in waiters:
        with suppress(RuntimeError):  # its loop has been closed
            loop.call_soon_threadsafe(event.set)
