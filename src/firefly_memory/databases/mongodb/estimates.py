"""About how many documents a store has: from the metadata of its collections, without counting."""

from __future__ import annotations

from typing import Any

from firefly_memory.databases.mongodb.collections import collections_of
from firefly_memory.databases.mongodb.errors import translated
from firefly_memory.stores.mongodb import MongoDBStore


def estimated_documents(url: str, options: dict[str, Any]) -> dict[str, int]:
    """By collection."""
    store = MongoDBStore(url, **options)
    try:
        with translated("estimate", store.database.place):
            there = store.database.blocking()
            return {each.name: int(each.estimated_document_count()) for each, _ in collections_of(there)}
    finally:
        store.close_sync()
