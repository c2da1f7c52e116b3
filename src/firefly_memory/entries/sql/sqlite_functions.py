"""SQLite has no SHA-256: a function of ours computes the ids of facts in its statements."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from firefly_memory.entries.fact_ids import own_id
from firefly_memory.identifiers import original_name

COMPUTED = "firefly_fact_id"
"""What the function is called; it takes a namespace and a key as they are stored."""


def add_functions(connection: Connection) -> None:
    """Let the statements of an SQLite ``connection`` call the function."""
    driver: Any = connection.connection.dbapi_connection
    driver.create_function(COMPUTED, 2, _fact_id, deterministic=True)


def _fact_id(namespace: object, key: object) -> str | None:
    if not isinstance(namespace, str) or not isinstance(key, str):
        return None
    return own_id(original_name(namespace), original_name(key))
