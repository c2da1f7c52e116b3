"""The tests. Importing them makes coverage, if it measures, survive forks of processes that have threads."""

from __future__ import annotations

import os
import threading
from typing import Any

import coverage


def _renew_the_lock_of_coverage() -> None:
    # Another thread may have held it while the process forked; nobody would release it in the child.
    measuring: Any = coverage.Coverage.current()
    if measuring is not None:
        measuring._collector.data_lock = threading.Lock()


# Before the library registers itself, whose hooks are measured.
os.register_at_fork(after_in_child=_renew_the_lock_of_coverage)
