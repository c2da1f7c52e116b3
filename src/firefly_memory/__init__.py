"""Durable memory for LLM agents on the database a team already runs.

Every public name can be imported from here. Names are loaded when they are first used: importing the package loads
no driver, no SQLAlchemy and no framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firefly_memory.lazy import lazily

if TYPE_CHECKING:
    from firefly_memory.connect import connect
    from firefly_memory.entries import MemoryEntry, MemoryScope
    from firefly_memory.errors import (
        ConfigurationError,
        ConflictError,
        CorruptDataError,
        DatabaseConnectionError,
        DatabaseStoreError,
        EntryOwnershipError,
        FireflyMemoryError,
        InvalidEntryError,
        MissingDependencyError,
        NotSupportedError,
        SchemaMismatchError,
        StoreClosedError,
        StoreTimeoutError,
    )
    from firefly_memory.protocols import AsyncMemoryStore, Capability, MemoryStore, Page, StoreView
    from firefly_memory.stores.base import EntryStore
    from firefly_memory.stores.custom import adapt
    from firefly_memory.stores.file import FileStore
    from firefly_memory.stores.memory import InMemoryStore
    from firefly_memory.stores.mongodb.store import MongoDBStore
    from firefly_memory.stores.sql.postgresql.store import PostgreSQLStore
    from firefly_memory.stores.sql.sqlite.store import SQLiteStore

__version__ = "0.1.0"

__all__ = [
    "AsyncMemoryStore",
    "Capability",
    "ConfigurationError",
    "ConflictError",
    "CorruptDataError",
    "DatabaseConnectionError",
    "DatabaseStoreError",
    "EntryOwnershipError",
    "EntryStore",
    "FileStore",
    "FireflyMemoryError",
    "InMemoryStore",
    "InvalidEntryError",
    "MemoryEntry",
    "MemoryScope",
    "MemoryStore",
    "MissingDependencyError",
    "MongoDBStore",
    "NotSupportedError",
    "Page",
    "PostgreSQLStore",
    "SQLiteStore",
    "SchemaMismatchError",
    "StoreClosedError",
    "StoreTimeoutError",
    "StoreView",
    "adapt",
    "connect",
]

_ERRORS = "firefly_memory.errors"
_PROTOCOLS = "firefly_memory.protocols"
_WHERE = {
    "AsyncMemoryStore": _PROTOCOLS,
    "Capability": _PROTOCOLS,
    "ConfigurationError": _ERRORS,
    "ConflictError": _ERRORS,
    "CorruptDataError": _ERRORS,
    "DatabaseConnectionError": _ERRORS,
    "DatabaseStoreError": _ERRORS,
    "EntryOwnershipError": _ERRORS,
    "EntryStore": "firefly_memory.stores.base",
    "FileStore": "firefly_memory.stores.file",
    "FireflyMemoryError": _ERRORS,
    "InMemoryStore": "firefly_memory.stores.memory",
    "InvalidEntryError": _ERRORS,
    "MemoryEntry": "firefly_memory.entries",
    "MemoryScope": "firefly_memory.entries",
    "MemoryStore": _PROTOCOLS,
    "MissingDependencyError": _ERRORS,
    "MongoDBStore": "firefly_memory.stores.mongodb.store",
    "NotSupportedError": _ERRORS,
    "Page": _PROTOCOLS,
    "PostgreSQLStore": "firefly_memory.stores.sql.postgresql.store",
    "SQLiteStore": "firefly_memory.stores.sql.sqlite.store",
    "SchemaMismatchError": _ERRORS,
    "StoreClosedError": _ERRORS,
    "StoreTimeoutError": _ERRORS,
    "StoreView": _PROTOCOLS,
    "adapt": "firefly_memory.stores.custom",
    "connect": "firefly_memory.connect",
}


def __getattr__(name: str) -> Any:
    return lazily(name, _WHERE, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
