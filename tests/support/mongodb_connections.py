"""Connections of PyMongo as it opens them while the servers elect: it uses them for no session, all their life."""

from __future__ import annotations

from typing import Any


def forget_sessions(client: Any) -> int:
    """Give the pooled connections of ``client`` the state that PyMongo gives them then; how many they are."""
    pooled = [each for server in _of_pymongo(client)._topology._servers.values() for each in server.pool.conns]
    for each in pooled:
        each.supports_sessions = False
    return len(pooled)


def _of_pymongo(client: Any) -> Any:
    return client.delegate if type(client).__module__.startswith("motor.") else client
