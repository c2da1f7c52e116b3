"""Work that is finished whatever becomes of the task that waits for it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from anyio import CancelScope

from firefly_memory.concurrency.cancellation import to_its_end

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` returns. If this task is cancelled meanwhile, ``CancelledError`` is raised once it is done."""
    with CancelScope(shield=True):  # a cancelled scope of anyio's would cancel the wait again and again
        result = await to_its_end(work)
    return result  # noqa: RET504 - for the type checker, who knows that some scopes swallow errors
