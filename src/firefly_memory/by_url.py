"""``connect(url)``: a store by its URL."""

from __future__ import annotations

from typing import Any

from firefly_memory.errors import ConfigurationError
from firefly_memory.stores.base import EntryStore
from firefly_memory.urls import EXAMPLES, Kind, database_in, directory_in, kind_of


def connect(url: str, **options: Any) -> EntryStore:
    """Open the store that ``url`` names; ``options`` are those of its class.

    ==========================================  ==========================================================
    ``sqlite:///memory.db``                     :class:`SQLiteStore`
    ``postgresql://…``, ``postgres://…``        :class:`PostgreSQLStore`
    ``mongodb://…``, ``mongodb+srv://…``        :class:`MongoDBStore`; ``mongodb://host/name`` names the database
    ``file:directory``, ``file:///directory``   :class:`FileStore`
    ``memory:``                                 :class:`InMemoryStore`
    ==========================================  ==========================================================
    """
    if not isinstance(url, str) and not hasattr(url, "render_as_string"):
        raise ConfigurationError(f"connect() needs a URL such as {EXAMPLES}, not {type(url).__name__}")
    text = url if isinstance(url, str) else url.render_as_string(hide_password=False)
    # Each store is imported when it is wanted: the others' drivers may not be installed.
    match kind_of(text):
        case Kind.SQLITE:
            from firefly_memory.databases.sql.sqlite.database import sqlite_path
            from firefly_memory.stores.sqlite import SQLiteStore

            return SQLiteStore(sqlite_path(text), **options)
        case Kind.POSTGRES:
            from firefly_memory.stores.postgresql import PostgreSQLStore

            return PostgreSQLStore(text, **options)
        case Kind.MONGODB:
            from firefly_memory.stores.mongodb import MongoDBStore

            named = database_in(text)
            return MongoDBStore(text, **({} if named is None else {"database": named}) | options)
        case Kind.FILE:
            from firefly_memory.stores.file import FileStore

            return FileStore(directory_in(text), **options)
        case Kind.IN_MEMORY:
            from firefly_memory.stores.memory import InMemoryStore

            return InMemoryStore(**options)
