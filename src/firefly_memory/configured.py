"""The store that the settings describe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from firefly_memory.by_url import connect
from firefly_memory.errors import DatabaseConnectionError
from firefly_memory.settings import MemorySettings, naming
from firefly_memory.stores.base import EntryStore
from firefly_memory.target import Target, target
from firefly_memory.urls import Kind


def configured_store(settings: MemorySettings) -> EntryStore:
    """Make the store of a manager. ``ConfigurationError`` names the variable to blame."""
    found = target(settings, for_a_manager=True)
    assert found is not None
    return store_of(found)


def store_of(found: Target, **options: Any) -> EntryStore:
    """Make it; ``options`` come before those that the settings have."""
    with naming(found.variable):
        return connect(found.url, **{**found.options, **options})


@contextmanager
def reading(found: Target, *, timeout: float = 30.0) -> Iterator[EntryStore]:
    """The store, opened to be read only: nothing is made, migrated or changed. It has to be there, and be current."""
    if found.kind is Kind.SQLITE:
        from firefly_memory.databases.sql.sqlite.database import IN_MEMORY, sqlite_path
        from firefly_memory.stores.read_only import read_only_store

        with naming(found.variable):
            path = sqlite_path(found.url)
        if path != IN_MEMORY:
            with read_only_store(Path(path), timeout=timeout) as read_only:
                yield read_only
            return
    options: dict[str, Any] = {} if found.kind is Kind.IN_MEMORY else {"timeout": timeout}
    if "migrate" in found.options:
        options["migrate"] = False
    store = store_of(found, **options)
    if store.path is not None and not store.path.is_dir():
        raise DatabaseConnectionError("read", f"there is no directory {store.path}")
    with store:
        yield store
