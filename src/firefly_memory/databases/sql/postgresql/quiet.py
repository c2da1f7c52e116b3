"""Whether a connection at rest has heard from its server, found out without asking the server.

A server that ends, or that ends a connection, says so: its last message, or the end of the stream, waits to be read.
"""

from __future__ import annotations

import select
from typing import Any


def is_quiet(connection: Any) -> bool:
    """Whether nothing waits to be read on a connection of psycopg or of SQLAlchemy's adapter, as far as can be seen."""
    driver_connection = getattr(connection, "driver_connection", connection)
    descriptor = _descriptor(driver_connection)
    if descriptor < 0 or not hasattr(select, "poll"):  # which eventlet takes away
        return False
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)  # errors and hang-ups are always reported
    return not poll.poll(0)


def _descriptor(connection: Any) -> int:
    """Of the connection's socket; -1 if it is closed."""
    if type(connection).__module__.startswith("asyncpg."):
        transport = connection._transport  # noqa: SLF001 - nothing public leads to the socket
        socket = None if connection.is_closed() or transport is None else transport.get_extra_info("socket")
        return -1 if socket is None else int(socket.fileno())
    return -1 if connection.closed else int(connection.fileno())
