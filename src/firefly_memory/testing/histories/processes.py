"""The processes of a run: they begin together, and some of them are killed."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from firefly_memory.testing.histories.job import ERROR_SUFFIX, READY, Job, work_in_process
from firefly_memory.testing.histories.operation import NEVER
from firefly_memory.testing.histories.recorder import read_history

_LONGEST_WAIT_BEFORE_KILL = 0.004  # seconds: about as long as an operation takes


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The processes of a run, and how many kills there are: of a process, or whatever ``kill`` kills."""

    processes: int
    kills: int
    kill: Callable[[], object] | None
    timeout: float
    start_method: str


class Processes:
    """Does ``job`` in the processes of ``plan``. When one of them is killed, another takes its place."""

    def __init__(self, job: Job, plan: Plan) -> None:
        self._random = random.Random(job.seed)
        self._directory = job.directory
        self._kill = plan.kill
        self._deadline = time.monotonic() + plan.timeout
        count, kills, kill = plan.processes, plan.kills, plan.kill
        replacements = kills if kill is None else 0
        jobs = [replace(job, name=f"process-{number}") for number in range(count + replacements)]
        for number in range(kills):
            jobs[number] = replace(
                jobs[number], announces=self._random.randint(2, max(2, job.clients * job.steps // 2))
            )
        context = multiprocessing.get_context(plan.start_method)
        self._processes = {each: _Process(each, context) for each in jobs}
        self._spare = [self._processes[each] for each in jobs[count:]]
        self._working = [self._processes[each] for each in jobs[:count]]
        self.killed = 0

    def work(self) -> None:
        """Returns when all have ended. ``AssertionError`` if one of them failed, or takes too long."""
        try:
            for each in self._processes.values():
                each.expect_ready(self._left())
            for each in self._working:
                each.begin()
            while self._working:
                self._wait_for_something()
        finally:
            for each in self._processes.values():
                each.end()

    def _wait_for_something(self) -> None:
        by_end: dict[Any, _Process] = {end: each for each in self._working for end in each.ends}
        found = wait(list(by_end), self._left())
        if not found:
            under_way = [each for each in read_history(self._directory) if each.end == NEVER]
            raise AssertionError("\n  ".join(["the processes do not end; under way are", *map(str, under_way)]))
        for each in {id(by_end[end]): by_end[end] for end in found}.values():
            if each.has_announced():
                self._kill_something(each)
            elif each.has_ended():
                self._working.remove(each)

    def _kill_something(self, process: _Process) -> None:
        self.killed += 1
        time.sleep(self._random.uniform(0, _LONGEST_WAIT_BEFORE_KILL))
        if self._kill is not None:
            self._kill()
            return
        process.end()
        self._working.remove(process)
        other = self._spare.pop()
        other.begin()
        self._working.append(other)

    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


class _Process:
    def __init__(self, job: Job, context: Any) -> None:
        self._job = job
        self._connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=work_in_process, args=(job, theirs), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def ends(self) -> list[Connection | int]:
        """What is ready when the process has announced something, or has ended."""
        return [self._process.sentinel] if self._connection.closed else [self._connection, self._process.sentinel]

    def expect_ready(self, seconds: float) -> None:
        with suppress(EOFError):
            if self._connection.poll(seconds) and self._connection.recv() == READY:
                return
        self._process.join(1)
        raise AssertionError(f"a process has not opened its store: {self._error()}")

    def begin(self) -> None:
        self._connection.send("begin")

    def has_announced(self) -> bool:
        with suppress(EOFError, OSError):
            if not self._connection.closed and self._connection.poll():
                self._connection.recv()
                return True
        self._connection.close()
        return False

    def has_ended(self) -> bool:
        self._process.join(0)
        if self._process.exitcode is None:
            return False
        assert self._process.exitcode == 0, f"a process ended with {self._process.exitcode}: {self._error()}"
        return True

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()

    def _error(self) -> str:
        path = self._job.directory / f"{self._job.name}{ERROR_SUFFIX}"
        return path.read_text(encoding="utf-8") if path.exists() else "it says nothing of why"
