"""What a client forgets when the servers have elected."""

from __future__ import annotations

from typing import Any
from weakref import ref

from pymongo.monitoring import (
    ServerHeartbeatFailedEvent,
    ServerHeartbeatListener,
    ServerHeartbeatStartedEvent,
    ServerHeartbeatSucceededEvent,
)

from firefly_memory.databases.mongodb.pymongo_cleanup import drop_connections


class NewPrimaries(ServerHeartbeatListener):
    """After each election, the client uses new connections. PyMongo keeps those that it opened during the election, and
    uses them for no session: with one of them, a write that is tried again fails without a pause until the time-out."""

    def __init__(self) -> None:
        self._client: ref[Any] | None = None
        self._elections: dict[Any, Any] = {}

    def watch(self, client: Any) -> None:
        self._client = ref(client)

    def succeeded(self, event: ServerHeartbeatSucceededEvent) -> None:
        hello, server = event.reply, event.connection_id
        if not hello.is_writable or hello.election_id == self._elections.get(server):
            return
        self._elections[server] = hello.election_id
        client = self._client and self._client()
        if client is not None:
            drop_connections(client)

    def started(self, event: ServerHeartbeatStartedEvent) -> None: ...

    def failed(self, event: ServerHeartbeatFailedEvent) -> None: ...
