"""``firefly-memory forget`` that dies in the middle, in a process of its own."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from firefly_memory import erasing
from firefly_memory.cli import main as command
from tests.support.workers import Worker

STEPS = 5
"""The tombstone of the owner, the end of interrupted deletions, the tombstones of a page, its deletion, the next facet."""


def killed_forget(step: int, owner: str, *options: str) -> None:
    """Let the command be killed, as with -9, after so many of its steps."""
    worker = Worker(__name__, step, owner, *options)
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL


def main() -> None:
    last, owner, *options = sys.argv[1:]
    steps = itertools.count(1)

    def dying_after(call: Callable[..., Any]) -> Callable[..., Any]:
        async def called(*arguments: Any) -> Any:
            result = await call(*arguments)
            if next(steps) == int(last):
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return called

    class Dying:
        """An object whose writes are steps."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            found = getattr(self._inner, name)
            return dying_after(found) if name in ("add", "delete", "scrub") else found

    class DyingErasure(erasing._Erasure):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self._tombstones: Any = Dying(self._tombstones)

    erasers = erasing._erasers_in
    setattr(erasing, "_Erasure", DyingErasure)  # noqa: B010 - the command offers neither
    setattr(erasing, "_erasers_in", lambda view: map(Dying, erasers(view)))  # noqa: B010
    command(["forget", owner, "--yes", *options])
