"""Accelerators switched on and off, and looked at, on a connection of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Engine

from firefly_memory.databases.sql.errors import DatabaseName
from firefly_memory.databases.sql.schema.accelerators import (
    Accelerator,
    Accelerators,
    Progress,
    Wanted,
    registered_accelerators,
)
from firefly_memory.databases.sql.schema.migrate import connected, has_schema
from firefly_memory.databases.sql.search_path import pinned_for_reading
from firefly_memory.errors import ConfigurationError

T = TypeVar("T")

Work = Callable[[Engine, DatabaseName, float], T]
"""What is done with the rights of a migration, with seconds to wait for the locks of others."""


def states(engine: Engine, db_name: DatabaseName, _: float = 0.0) -> tuple[Accelerator, ...]:
    """Every accelerator that the database can have."""
    with connected(engine, db_name, "accelerators") as connection, pinned_for_reading(connection):
        return tuple(
            state for each in registered_accelerators() for state in each.states(connection, db_name.schema_name)
        )


def enable(
    engine: Engine, db_name: DatabaseName, timeout: float, *, wanted: Wanted, kind: str, progress: Progress | None
) -> None:
    has_schema(engine, db_name, migrate=False)
    with connected(engine, db_name, "enable") as connection:
        _of_kind(kind).enable(connection, db_name, wanted, timeout, progress)


def disable(engine: Engine, db_name: DatabaseName, timeout: float, *, wanted: Wanted, kind: str) -> None:
    has_schema(engine, db_name, migrate=False)
    with connected(engine, db_name, "disable") as connection:
        _of_kind(kind).disable(connection, db_name, wanted, timeout)


def _of_kind(kind: str) -> Accelerators:
    found = {each.kind: each for each in registered_accelerators()}
    if kind not in found:
        raise ConfigurationError(f"there are no accelerators for {kind!r}; there are for {', '.join(found)}")
    return found[kind]
