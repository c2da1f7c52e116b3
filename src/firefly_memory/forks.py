"""What has to happen around ``fork()`` so that parent and child go on with something sane."""

from __future__ import annotations

import os
import threading
from typing import Self
from weakref import WeakSet


class ForkAware:
    """Something that is told of forks for as long as it lives, once :meth:`watch_forks` was called."""

    def watch_forks(self) -> None:
        _watching.add(self)

    def before_fork(self) -> None:
        """In the parent. Must not wait for another watcher."""

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
    """Lets any number of threads pass, but nobody while the process forks: not even a library is caught half-way."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._shut = False

    def __enter__(self) -> Self:
        with self._changed:
            while self._shut:
                self._changed.wait()
            self._inside += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside -= 1
            if not self._inside:
                self._changed.notify_all()

    def shut(self) -> None:
        """Let nobody in, and wait until nobody is inside."""
        with self._changed:
            self._shut = True
            while self._inside:
                self._changed.wait()

    def open(self) -> None:
        with self._changed:
            self._shut = False
            self._changed.notify_all()


_watching: WeakSet[ForkAware] = WeakSet()
_told: list[ForkAware] = []  # so that the same ones are told before and after


def _before() -> None:
    for watcher in list(_watching):
        watcher.before_fork()
        _told.append(watcher)


def _after_in_parent() -> None:
    while _told:
        _told.pop().after_fork_in_parent()


def _after_in_child() -> None:
    while _told:
        _told.pop().after_fork_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
