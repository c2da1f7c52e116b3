"""A process of its own that uses a store."""

from __future__ import annotations

import asyncio
import json
import pkgutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from firefly_memory import EntryStore, MemoryEntry, adapt
from firefly_memory.tokens import tiktoken_loader
from tests import support
from tests.support.backends import BY_NAME, Backend, Place
from tests.support.tiktoken_vocabularies import LONG_ENOUGH
from tests.support.workers import Worker


def start(backend: Backend, place: Place, work: str, *arguments: object) -> Worker:
    """Start a worker on ``backend`` at ``place``; it prints lines and waits for one before it begins."""
    wheres = {"directory": str(place.directory), "postgresql": "", "mongodb": ""}
    if backend.name.startswith("postgresql"):
        wheres["postgresql"] = place.postgresql()
    if backend.name.startswith("mongodb"):
        wheres["mongodb"] = place.mongodb()
    return Worker(__name__, backend.name, json.dumps(wheres), work, *arguments)


def together(workers: list[Worker]) -> list[str]:
    """Let all workers begin at once, and return what each printed. A worker that fails fails the test."""
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    printed = [worker.communicate() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * len(workers)
    return printed


def killed_after(count: int, worker: Worker) -> list[str]:
    """Let ``worker`` begin, kill it with -9 once it printed ``count`` lines, and return every line it printed."""
    worker.stdin.write("go\n")
    worker.stdin.flush()
    assert worker.stdout.readline() == "ready\n"
    lines = [worker.stdout.readline() for _ in range(count)]
    worker.kill()
    lines += worker.communicate().splitlines()
    return [line.strip() for line in lines]


def save_many_entries(store: EntryStore, namespace: str, name: str, count: str) -> None:
    for number in range(int(count)):
        store.save(namespace, MemoryEntry(key=name, content=[name, number]))


def save_from_tasks(store: EntryStore, namespace: str, name: str, count: str) -> None:
    async def main() -> None:
        entries = [MemoryEntry(key=name, content=[name, number]) for number in range(int(count))]
        await asyncio.gather(*[store.async_save(namespace, entry) for entry in entries])
        await store.close()

    asyncio.run(main())


def save_one_entry_again_and_again(store: EntryStore, namespace: str, name: str, count: str) -> None:
    for number in range(int(count)):
        store.save(namespace, MemoryEntry(entry_id="the one", content=[name, number]))


def save_until_killed(store: EntryStore, namespace: str) -> None:
    number = 0
    while True:
        store.save_many(namespace, [MemoryEntry(content=[number, part]) for part in range(3)])
        print(number, flush=True)
        number += 1


def load(store: EntryStore, namespace: str) -> None:
    print(json.dumps([entry.content for entry in store.load(namespace)]))


def _work_named(name: str) -> Callable[..., Any]:
    """A function of this module, or of a module ``…_work`` beside it."""
    names = [each.name for each in pkgutil.iter_modules(support.__path__) if each.name.endswith("_work")]
    modules = [sys.modules[__name__], *(import_module(f"{support.__name__}.{each}") for each in names)]
    found = [vars(each)[name] for each in modules if name in vars(each)]
    assert len(found) == 1, f"{len(found)} modules have {name}, of {', '.join(each.__name__ for each in modules)}"
    work: Callable[..., Any] = found[0]
    return work


def main() -> None:
    tiktoken_loader.LOAD_TIMEOUT = LONG_ENOUGH
    name, wheres, work, *arguments = sys.argv[1:]
    where = json.loads(wheres)
    with ExitStack() as later:
        place = Place(Path(where["directory"]), lambda: str(where["postgresql"]), lambda: str(where["mongodb"]), later)
        store = adapt(BY_NAME[name].open(place))
        print("ready", flush=True)
        sys.stdin.readline()
        _work_named(work)(store, *arguments)
        store.close_sync()
