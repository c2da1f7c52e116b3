"""What to do with a task whose event loop was closed under it. asyncio offers nothing for this, so it goes by what
asyncio keeps to itself. A test notices changes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any


def end_task(task: asyncio.Task[Any]) -> None:
    """End its coroutine here and now, and silence what would complain of the task."""
    task.cancel()
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
    task.add_done_callback(_retrieve)
    _end(task.get_coro())


def _retrieve(task: asyncio.Task[Any]) -> None:
    """A loop that runs once more finds that the coroutine has ended, and would log that nobody asked why."""
    if not task.cancelled():
        task.exception()


def _end(coroutine: Any) -> None:
    for _ in range(10):  # it may await something on its way out, more than once
        with suppress(RuntimeError):
            coroutine.close()
            return
