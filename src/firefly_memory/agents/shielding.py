"""Work that is finished whatever becomes of the task that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from anyio import CancelScope

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` returns. If this task is cancelled meanwhile, ``CancelledError`` is raised once it is done."""
    task = asyncio.ensure_future(work)
    cancelled = False
    with CancelScope(shield=True):  # a cancelled scope of anyio's would cancel the wait again and again
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                cancelled = True
            except BaseException:  # noqa: BLE001, S110 - it is raised below
                pass
    result = task.result()
    if cancelled:
        raise asyncio.CancelledError
    return result
