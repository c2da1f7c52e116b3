"""What PyMongo's asynchronous client leaves behind when its event loop is closed under it, ended without that loop; and
connections that PyMongo keeps although they are of no use.

PyMongo and asyncio offer nothing for this, so it goes by what they keep to themselves. Tests notice changes.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from firefly_memory.concurrency.ended_loop import end_task


def cut_client(client: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Close the sockets, and silence what would complain of having been left open."""
    for transport in list(getattr(loop, "_transports", {}).values()):
        if _is_of_pymongo(transport.get_protocol()):
            transport.abort()
    end_tasks(loop)
    client._closed = True  # noqa: SLF001


def end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """End those that PyMongo has begun."""
    for task in asyncio.all_tasks(loop):
        if _is_from_pymongo(task.get_coro()):
            end_task(task)


def drop_connections(client: Any) -> None:
    """The client opens new connections for its next calls. Calls under way keep theirs until they end."""
    if type(client).__module__.startswith("motor."):
        client = client.delegate
    with suppress(AttributeError):  # another version of PyMongo may keep them elsewhere
        for server in list(client._topology._servers.values()):  # noqa: SLF001
            server.pool.gen.inc(None)


def _is_from_pymongo(coroutine: Any) -> bool:
    frame = getattr(coroutine, "cr_frame", None)
    return frame is not None and frame.f_globals["__name__"].startswith("pymongo.")


def _is_of_pymongo(protocol: Any) -> bool:
    innermost = getattr(protocol, "_app_protocol", protocol)  # behind TLS
    return type(innermost).__module__.startswith("pymongo.")
