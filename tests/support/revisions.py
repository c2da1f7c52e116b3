"""The revisions of a database that is named by its URL only."""

from __future__ import annotations

from contextlib import AbstractContextManager

from firefly_memory.databases.sql.schema.commands import Administration
from firefly_memory.target import Target, migrations_of
from firefly_memory.urls import row_of


def migrations(url: str, *, timeout: float) -> AbstractContextManager[Administration]:
    """What ``firefly-memory db`` works with."""
    return migrations_of(Target(row_of(url).kind, url, {}, None), timeout=timeout)
