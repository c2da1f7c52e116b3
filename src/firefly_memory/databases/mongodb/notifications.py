"""Change streams, for event loops: one for each collection tells of the documents that anybody inserts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pymongo.errors import OperationFailure

from firefly_memory.concurrency.sync_bridge import result_of
from firefly_memory.databases.mongodb.pymongo_cleanup import end_tasks
from firefly_memory.databases.notifications import Inbox, NeverArriveError

KEY = "location"
"""The field whose value is the key of a notification. Only documents with a ``number`` cause one."""

_PIPELINE = [
    {"$match": {"operationType": "insert", "fullDocument.number": {"$exists": True}}},
    {"$project": {"key": f"$fullDocument.{KEY}"}},
]

_WAITS = 1.0
"""Seconds that the server waits for an insert before it answers."""

_REASONS = {
    13: "the user may not open change streams (actions find and changeStream)",
    40573: "the server is standalone; a replica set has change streams",
}
"""By the error code of the server."""


class _Connection(Protocol):
    @property
    def client(self) -> Any: ...

    def __getitem__(self, name: str) -> Any: ...


class ChangeStreamReceiver:
    """The change stream of one collection, on the connection that ``connect`` gives for the running event loop."""

    cancel_again_after: float | None = 0.2

    def __init__(self, connect: Callable[[], _Connection], collection: str) -> None:
        self._connect = connect
        self._collection = collection

    async def receive(self, inbox: Inbox) -> None:
        connection = self._connect()
        options = connection.client.options
        if options.pool_options.max_pool_size == 1:
            raise NeverArriveError("the client has one connection, which a change stream would keep busy")
        waits = min((_WAITS, *(limit / 2 for limit in _limits(options))))
        opening = connection[self._collection].watch(_PIPELINE, max_await_time_ms=int(waits * 1000))
        try:
            async with await result_of(opening) as stream:
                inbox.begin()
                while stream.alive:
                    change = await stream.try_next()
                    if change is not None:
                        inbox.deliver(change.get("key"))
                    _stop_if_cancelled()
        except OperationFailure as exc:
            if exc.code in _REASONS:
                raise NeverArriveError(_REASONS[exc.code]) from exc
            raise

    def cut(self, loop: asyncio.AbstractEventLoop) -> None:
        """The client is cut as well, or is the caller's, who may run a loop at rest again."""
        if loop.is_closed():
            end_tasks(loop)


def _stop_if_cancelled() -> None:
    """PyMongo loses a cancellation where the client has a time-out."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _limits(options: Any) -> Iterator[float]:
    """Seconds after which the client gives up waiting for an answer."""
    for limit in (options.timeout, options.pool_options.socket_timeout):
        if limit:
            yield limit
