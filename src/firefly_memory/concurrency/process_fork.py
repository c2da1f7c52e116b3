"""What has to happen around ``fork()`` so that parent and child go on with something sane."""

from __future__ import annotations

import math
import os
import threading
import time
from typing import Self
from weakref import WeakSet


class ForkAware:
    """Something that is notified of forks for as long as it lives, once :meth:`watch_forks` was called."""

    def watch_forks(self) -> None:
        _watching.add(self)

    def before_fork(self) -> None:
        """In the parent. May wait for work under way to end, which may still need a :class:`ForkSafeLock`."""

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


class ForkSafeLock(ForkAware):
    """A lock that is free in a forked child, with what it guards in a consistent state. Holders must not fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.watch_forks()

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        self._lock.release()


class ForkBarrier:
    """Lets threads pass, as many at once as there is room for, but nobody while the process forks.

    So not even a library is caught half-way. A fork waits for those inside: nobody should wait for long in there.
    """

    def __init__(self, room: float = math.inf) -> None:
        self._lock = threading.Lock()
        self._may_enter = threading.Condition(self._lock)
        self._is_empty = threading.Condition(self._lock)
        self._room = room
        self._inside = 0
        self._shut = False

    def enter(self, deadline: float | None = None) -> bool:
        """Go in, or return ``False`` if that was not possible before ``deadline``, by ``time.monotonic()``."""
        with self._lock:
            while self._shut or self._inside >= self._room:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._may_enter.wait(left)
            self._inside += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._shut:
                self._may_enter.notify()
            elif not self._inside:
                self._is_empty.notify_all()

    def __enter__(self) -> Self:
        self.enter()
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def shut(self) -> None:
        """Let nobody in, and wait until nobody is inside."""
        with self._lock:
            self._shut = True
            while self._inside:
                self._is_empty.wait()

    def open(self) -> None:
        with self._lock:
            self._shut = False
            self._may_enter.notify_all()


_watching: WeakSet[ForkAware] = WeakSet()
_notified: list[ForkAware] = []  # so that the same ones are notified before and after


def _before() -> None:
    for watcher in sorted(_watching, key=lambda watcher: isinstance(watcher, ForkSafeLock)):  # locks last
        watcher.before_fork()
        _notified.append(watcher)


def _after_in_parent() -> None:
    while _notified:
        _notified.pop().after_fork_in_parent()


def _after_in_child() -> None:
    while _notified:
        _notified.pop().after_fork_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
