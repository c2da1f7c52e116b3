"""``firefly-memory copy`` that dies in the middle: ``python -m tests.support.copy_worker turns 100 OPTIONS``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

from firefly_memory.cli import copy as command
from firefly_memory.cli import main
from firefly_memory.copying import copy_store
from firefly_memory.transfer.counts import Counts
from tests.support.workers import ROOT


def killed_copy(kind: str, count: int, *options: str) -> None:
    """Let a copy be killed, as with -9, when it is at so many of a kind."""
    arguments = [sys.executable, "-m", "tests.support.copy_worker", kind, str(count), *options]
    killed = subprocess.run(arguments, cwd=ROOT, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL


def _work() -> None:
    kind, count, *options = sys.argv[1:]

    def progress(step: str, counts: Counts) -> None:
        if step == "copying" and getattr(counts, kind) >= int(count):
            os.kill(os.getpid(), signal.SIGKILL)

    def copy(*stores: Any, **given: Any) -> Any:
        return copy_store(*stores, **{**given, "progress": progress})

    setattr(command, "copy_store", copy)  # noqa: B010 - the command does not offer it
    main(["copy", *options])


if __name__ == "__main__":
    _work()
