"""``PostgreSQLStore`` and ``MongoDBStore`` under their documented import path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firefly_memory.errors import DatabaseConnectionError, DatabaseStoreError
from firefly_memory.lazy_names import lazily

if TYPE_CHECKING:
    from firefly_memory.stores.mongodb import MongoDBStore
    from firefly_memory.stores.postgresql import PostgreSQLStore

__all__ = ["DatabaseConnectionError", "DatabaseStoreError", "MongoDBStore", "PostgreSQLStore"]

_WHERE = {
    "MongoDBStore": "firefly_memory.stores.mongodb",
    "PostgreSQLStore": "firefly_memory.stores.postgresql",
}


if not TYPE_CHECKING:  # or no checker would notice a misspelt name

    def __getattr__(name: str) -> Any:
        return lazily(name, _WHERE, globals())
