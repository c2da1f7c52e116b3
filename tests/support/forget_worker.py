"""``firefly-memory forget`` that dies in the middle: ``python -m tests.support.forget_worker 2 OWNER OPTIONS``."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from firefly_memory import erasure
from firefly_memory.cli import main
from tests.support.workers import ROOT

STEPS = 5
"""The tombstone of the owner, the end of interrupted deletions, the tombstones of a page, its deletion, the next facet."""


def killed_forget(step: int, owner: str, *options: str) -> None:
    """Let the command be killed, as with -9, after so many of its steps."""
    arguments = [sys.executable, "-m", "tests.support.forget_worker", str(step), owner, *options]
    killed = subprocess.run(arguments, cwd=ROOT, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL


def _work() -> None:
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

    class DyingErasure(erasure._Erasure):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self._tombstones: Any = Dying(self._tombstones)

    erasers = erasure._erasers_in
    setattr(erasure, "_Erasure", DyingErasure)  # noqa: B010 - the command offers neither
    setattr(erasure, "_erasers_in", lambda view: map(Dying, erasers(view)))  # noqa: B010
    main(["forget", owner, "--yes", *options])


if __name__ == "__main__":
    _work()
