"""What PyMongo's asynchronous client leaves behind when its event loop is closed under it, ended without that loop.

PyMongo and asyncio offer nothing for this, so it goes by what they keep to themselves. A test notices changes.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any


def cut_client(client: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Close the sockets, and silence what would complain of having been left open."""
    for transport in list(getattr(loop, "_transports", {}).values()):
        if _is_of_pymongo(transport.get_protocol()):
            transport.abort()
    for task in asyncio.all_tasks(loop):
        if _is_from_pymongo(task.get_coro()):
            task.cancel()
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
            task.add_done_callback(_retrieve)
            _end(task.get_coro())
    client._closed = True  # noqa: SLF001


def _retrieve(task: asyncio.Task[Any]) -> None:
    """A loop that runs once more finds that the coroutine has ended, and would log that nobody asked why."""
    if not task.cancelled():
        task.exception()


def _end(coroutine: Any) -> None:
    for _ in range(10):  # it may await something on its way out, more than once
        with suppress(RuntimeError):
            coroutine.close()
            return


def _is_from_pymongo(coroutine: Any) -> bool:
    frame = getattr(coroutine, "cr_frame", None)
    return frame is not None and frame.f_globals["__name__"].startswith("pymongo.")


def _is_of_pymongo(protocol: Any) -> bool:
    innermost = getattr(protocol, "_app_protocol", protocol)  # behind TLS
    return type(innermost).__module__.startswith("pymongo.")
