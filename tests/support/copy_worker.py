"""``firefly-memory copy`` that dies in the middle, in a process of its own."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from firefly_memory.cli import copy as command
from firefly_memory.cli import main as run_command
from firefly_memory.copying import copy_store
from firefly_memory.transfer.counts import Counts
from tests.support.workers import Worker


def killed_copy(kind: str, count: int, *options: str) -> None:
    """Let a copy be killed, as with -9, when it is at so many of a kind."""
    worker = Worker(__name__, kind, count, *options)
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL


def main() -> None:
    kind, count, *options = sys.argv[1:]

    def progress(step: str, counts: Counts) -> None:
        if step == "copying" and getattr(counts, kind) >= int(count):
            os.kill(os.getpid(), signal.SIGKILL)

    def copy(*stores: Any, **given: Any) -> Any:
        return copy_store(*stores, **{**given, "progress": progress})

    setattr(command, "copy_store", copy)  # noqa: B010 - the command does not offer it
    run_command(["copy", *options])
