"""``firefly-memory prune`` that dies in the middle, and a sweeper, in processes of their own."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from typing import Any

from firefly_memory import SQLiteStore
from firefly_memory.cli import main as command
from firefly_memory.conversations.retention import ConversationPruner
from firefly_memory.sweeper import Sweeper
from tests.support.workers import Worker


def killed_prune(deletions: int, *options: str) -> None:
    """Let the command be killed, as with -9, after so many conversations."""
    killed = Worker(__name__, "kill", deletions, *options)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL


def sweeping(path: object) -> tuple[Worker, bool]:
    """A process with a sweeper, and whether it is the one that sweeps. It ends when its input does."""
    process = Worker(__name__, "sweep", path)
    return process, process.stdout.readline() == "swept\n"


def _kill(last: str, *options: str) -> None:
    delete, deletions = ConversationPruner.delete, itertools.count(1)

    async def dying(pruner: ConversationPruner, doomed: Any) -> Any:
        for each in doomed:
            await delete(pruner, [each])
            if next(deletions) == int(last):
                os.kill(os.getpid(), signal.SIGKILL)

    setattr(ConversationPruner, "delete", dying)  # noqa: B010 - the command does not offer it
    command(["prune", "--older-than", "1d", "--yes", *options])


def _sweep(path: str) -> None:
    async def run() -> None:
        swept = asyncio.Event()

        async def pause(_: float) -> None:
            swept.set()
            await asyncio.get_running_loop().create_future()

        async with SQLiteStore(path) as store:
            sweeper = Sweeper(store, every="1h", older_than="1d")
            setattr(sweeper, "_wait", pause)  # noqa: B010 - nobody waits in tests
            async with sweeper:
                await swept.wait()
                print("swept" if sweeper._claim._may_be_mine else "left it to another process", flush=True)
                await asyncio.to_thread(sys.stdin.read)

    asyncio.run(run())


def main() -> None:
    work, *arguments = sys.argv[1:]
    _kill(*arguments) if work == "kill" else _sweep(*arguments)
