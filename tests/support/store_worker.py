"""A process of its own that uses a store: ``python -m tests.support.store_worker BACKEND PLACE WORK ARGUMENTS``."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from firefly_memory import EntryStore, MemoryEntry, adapt
from firefly_memory.tokens import tiktoken_loader
from tests.support import conversation_work
from tests.support.backends import BY_NAME, Backend, Place
from tests.support.tiktoken_vocabularies import LONG_ENOUGH

ROOT = Path(__file__).parents[2]


def start(backend: Backend, place: Place, work: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a worker on ``backend`` at ``place``; it prints lines and waits for one before it begins."""
    wheres = {"directory": str(place.directory), "postgresql": "", "mongodb": ""}
    if backend.name.startswith("postgresql"):
        wheres["postgresql"] = place.postgresql()
    if backend.name.startswith("mongodb"):
        wheres["mongodb"] = place.mongodb()
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "tests.support.store_worker",
        backend.name,
        json.dumps(wheres),
        work,
    ]
    return subprocess.Popen(
        [*command, *map(str, arguments)], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def together(workers: list[subprocess.Popen[str]]) -> list[str]:
    """Let all workers begin at once, and return what each printed. A worker that fails fails the test."""
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    printed = [worker.communicate(timeout=120)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * len(workers)
    return printed


def killed_after(count: int, worker: subprocess.Popen[str]) -> list[str]:
    """Let ``worker`` begin, kill it with -9 once it printed ``count`` lines, and return every line it printed."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()
    assert worker.stdout.readline() == "ready\n"
    lines = [worker.stdout.readline() for _ in range(count)]
    worker.kill()
    lines += worker.stdout  # not communicate(), which would lose what readline() read ahead
    worker.communicate()
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


def main() -> None:
    tiktoken_loader.LOAD_TIMEOUT = LONG_ENOUGH
    name, wheres, work, *arguments = sys.argv[1:]
    where = json.loads(wheres)
    with ExitStack() as later:
        place = Place(Path(where["directory"]), lambda: str(where["postgresql"]), lambda: str(where["mongodb"]), later)
        store = adapt(BY_NAME[name].open(place))
        print("ready", flush=True)
        sys.stdin.readline()
        work_of_memories = getattr(conversation_work, work, None)
        (work_of_memories or globals()[work])(store, *arguments)
        store.close_sync()


if __name__ == "__main__":
    main()
