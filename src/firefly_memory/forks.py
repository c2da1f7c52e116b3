"""What has to happen around ``fork()`` so that a child starts with something sane."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

Owner = TypeVar("Owner")

_guarded: WeakSet[threading.Lock] = WeakSet()
_renewals: WeakKeyDictionary[Any, Callable[[Any], None]] = WeakKeyDictionary()


def guarded_lock() -> threading.Lock:
    """A lock that is free in a forked child, with what it guards in a consistent state.

    Holders must not take a second such lock, nor fork.
    """
    lock = threading.Lock()
    _guarded.add(lock)
    return lock


def renew_after_fork(owner: Owner, renew: Callable[[Owner], None]) -> None:
    """Call ``renew(owner)`` in every forked child, for as long as ``owner`` lives."""
    _renewals[owner] = renew


_held: list[threading.Lock] = []


def _before() -> None:
    for lock in list(_guarded):
        lock.acquire()
        _held.append(lock)


def _after_in_parent() -> None:
    while _held:
        _held.pop().release()


def _after_in_child() -> None:
    _after_in_parent()
    for owner, renew in list(_renewals.items()):
        renew(owner)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
