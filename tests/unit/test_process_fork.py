"""Behaviour around ``fork()``, while other threads work."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from firefly_memory.concurrency.process_fork import ForkAware, ForkBarrier, ForkSafeLock

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]


class Workshop(ForkAware):
    """Waits with a fork until the work in it is done."""

    def __init__(self) -> None:
        self.barrier = ForkBarrier()
        self.closing = threading.Event()
        self.watch_forks()

    def before_fork(self) -> None:
        self.closing.set()
        self.barrier.shut()

    def after_fork_in_parent(self) -> None:
        self.barrier.open()


def test_work_that_a_fork_waits_for_can_take_more_locks() -> None:
    workshop, locks = Workshop(), [ForkSafeLock() for _ in range(20)]
    at_work = threading.Event()

    def work() -> None:
        with workshop.barrier:
            at_work.set()
            workshop.closing.wait()
            for lock in locks:
                with lock:
                    pass

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(work)
        at_work.wait()
        child = os.fork()
        if child == 0:
            os._exit(0 if done.done() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        done.result()
    with workshop.barrier, locks[0]:
        pass


def test_no_work_is_running_while_a_process_forks() -> None:
    workshop = Workshop()
    done = threading.Event()
    inside: list[int] = []

    def work() -> None:
        while not done.is_set():
            with workshop.barrier:
                inside.append(1)
                inside.pop()

    with ThreadPoolExecutor(4) as threads:
        working = [threads.submit(work) for _ in range(4)]
        codes = []
        try:
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    os._exit(len(inside))
                codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        finally:
            done.set()
        for each in working:
            each.result()
    assert codes == [0] * 20


def test_a_barrier_admits_as_many_callers_as_it_has_room_for() -> None:
    barrier = ForkBarrier(room=2)
    assert barrier.enter()
    assert barrier.enter(0)
    assert not barrier.enter(0)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(barrier.enter)
        barrier.leave()
        assert waiting.result()
    barrier.leave()
    barrier.leave()
    barrier.shut()
    assert not barrier.enter(0)
    barrier.open()
    assert barrier.enter(0)
