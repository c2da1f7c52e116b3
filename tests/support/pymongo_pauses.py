"""PyMongo notices half a second late that its server can be used again: tests that lose hundreds of connections wait less."""

from __future__ import annotations

from pymongo import common, network_layer


def shorten() -> None:
    """For the clients that this process makes from now on."""
    common.MIN_HEARTBEAT_INTERVAL = 0.02  # between two looks at a lost server; PyMongo's own tests shorten it as well
    network_layer._POLL_TIMEOUT = 0.02  # until a coroutine that waits for a lost connection is told
