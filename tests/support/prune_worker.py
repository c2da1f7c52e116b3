"""``firefly-memory prune`` that dies in the middle, and a sweeper in a process of its own.

``python -m tests.support.prune_worker kill 2 OPTIONS`` dies after two deletions;
``python -m tests.support.prune_worker sweep PATH`` says whether it has swept the SQLite file, and waits.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from typing import Any

from firefly_memory import SQLiteStore
from firefly_memory.cli import main
from firefly_memory.conversations.retention import ConversationPruner
from firefly_memory.sweeper import Sweeper
from tests.support.workers import ROOT

_COMMAND = [sys.executable, "-m", "tests.support.prune_worker"]


def killed_prune(deletions: int, *options: str) -> None:
    """Let the command be killed, as with -9, after so many conversations."""
    killed = subprocess.run([*_COMMAND, "kill", str(deletions), *options], cwd=ROOT, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL


def sweeping(path: object) -> tuple[subprocess.Popen[str], bool]:
    """A process with a sweeper, and whether it is the one that sweeps. It ends when its input does."""
    process = subprocess.Popen(
        [*_COMMAND, "sweep", str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline() == "swept\n"


def _kill(last: str, *options: str) -> None:
    delete, deletions = ConversationPruner.delete, itertools.count(1)

    async def dying(pruner: ConversationPruner, doomed: Any) -> Any:
        for each in doomed:
            await delete(pruner, [each])
            if next(deletions) == int(last):
                os.kill(os.getpid(), signal.SIGKILL)

    setattr(ConversationPruner, "delete", dying)  # noqa: B010 - the command does not offer it
    main(["prune", "--older-than", "1d", "--yes", *options])


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


if __name__ == "__main__":
    work, *arguments = sys.argv[1:]
    _kill(*arguments) if work == "kill" else _sweep(*arguments)
