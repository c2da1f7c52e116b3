"""The store that the settings describe."""

from __future__ import annotations

from typing import Any

from firefly_memory.by_url import connect
from firefly_memory.settings import MemorySettings
from firefly_memory.stores.base import EntryStore
from firefly_memory.target import Target, naming, target


def configured_store(settings: MemorySettings) -> EntryStore:
    """Make the store of a manager. ``ConfigurationError`` names the variable to blame."""
    found = target(settings, for_a_manager=True)
    assert found is not None
    return store_of(found)


def store_of(found: Target, **options: Any) -> EntryStore:
    """Make it; ``options`` come before those that the settings have."""
    with naming(found.variable):
        return connect(found.url, **{**found.options, **options})
