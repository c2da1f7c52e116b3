"""The work of one process: several clients on one store, as threads or as tasks."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.protocols import MemoryStore, StoreView
from firefly_memory.stores.adapter import adapt
from firefly_memory.stores.base import EntryStore
from firefly_memory.testing.checks import Mode
from firefly_memory.testing.histories.client import Client
from firefly_memory.testing.histories.recorder import Recorder

T = TypeVar("T")

ERROR_SUFFIX = ".error"
READY, REACHED = "ready", "reached"


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a process needs to know; it can be pickled if ``open_store`` can."""

    name: str
    open_store: Callable[[], MemoryStore]
    mode: Mode
    run: str
    seed: int
    clients: int
    steps: int
    directory: Path
    announces: int | None = None
    """The number of the operation before which the process says so to its parent, which may kill it."""

    def client(self, number: int, store: EntryStore, on_begin: Callable[[], object] = lambda: None) -> Client:
        name = f"{self.name}.{number}"
        recorder = Recorder(self.directory, name, on_begin)
        return Client(name, store, self.mode, self.run, f"{self.seed}:{name}", recorder)


async def work(job: Job, store: EntryStore, on_begin: Callable[[], object] = lambda: None) -> None:
    """Let all clients of ``job`` do their steps at the same time."""
    clients = [job.client(number, store, on_begin) for number in range(job.clients)]
    try:
        if job.mode is Mode.BLOCKING:
            with ThreadPoolExecutor(job.clients) as threads:
                for ended in [threads.submit(run_without_loop, each.work(job.steps)) for each in clients]:
                    ended.result()
        else:
            await asyncio.gather(*[each.work(job.steps) for each in clients])
    finally:
        for each in clients:
            each.close()


def view_of(job: Job, store: EntryStore) -> StoreView:
    """What initializes and closes ``store``."""
    return store.blocking if job.mode is Mode.BLOCKING else store.suspending


def work_in_process(job: Job, connection: Connection) -> None:
    """The whole life of a process: it opens a store, waits for a word, and works."""
    try:
        store = adapt(job.open_store())
        connection.send(READY)
        connection.recv()
        complete(job.mode, partial(_work_and_close, job, store, _Announcer(job.announces, connection).count))
    except Exception:  # noqa: BLE001 - the parent shows it
        (job.directory / f"{job.name}{ERROR_SUFFIX}").write_text(traceback.format_exc(), encoding="utf-8")
        sys.exit(1)


async def _work_and_close(job: Job, store: EntryStore, on_begin: Callable[[], object]) -> None:
    await work(job, store, on_begin)
    await view_of(job, store).close()


class _Announcer:
    """Says to the parent that an operation is about to begin."""

    def __init__(self, announces: int | None, connection: Connection) -> None:
        self._announces = announces
        self._connection = connection
        self._begun = 0
        self._lock = threading.Lock()

    def count(self) -> None:
        with self._lock:
            self._begun += 1
            if self._begun == self._announces:
                self._connection.send(REACHED)


def complete(mode: Mode, body: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine of either mode in a thread of its own: the caller may have an event loop."""
    with ThreadPoolExecutor(1) as thread:
        if mode is Mode.BLOCKING:
            return thread.submit(lambda: run_without_loop(body())).result()
        return thread.submit(lambda: asyncio.run(body())).result()
