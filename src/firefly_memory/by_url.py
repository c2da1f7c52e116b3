"""``connect(url)``: a store by its URL."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from firefly_memory.errors import ConfigurationError
from firefly_memory.stores.base import EntryStore

_EXAMPLES = "sqlite:///memory.db, postgresql://host/name, mongodb://host/, file:directory or memory:"


def connect(url: str, **options: Any) -> EntryStore:
    """Open the store that ``url`` names; ``options`` are those of its class.

    ==========================================  ======================
    ``sqlite:///memory.db``                     :class:`SQLiteStore`
    ``postgresql://…``, ``postgres://…``        :class:`PostgreSQLStore`
    ``mongodb://…``, ``mongodb+srv://…``        :class:`MongoDBStore`
    ``file:directory``, ``file:///directory``   :class:`FileStore`
    ``memory:``                                 :class:`InMemoryStore`
    ==========================================  ======================
    """
    # Each store is imported when it is wanted: the others' drivers may not be installed.
    if not isinstance(url, str) and not hasattr(url, "render_as_string"):
        raise ConfigurationError(f"connect() needs a URL such as {_EXAMPLES}, not {type(url).__name__}")
    text = url if isinstance(url, str) else url.render_as_string(hide_password=False)
    scheme, colon, rest = text.partition(":")
    match scheme.lower().partition("+")[0] if colon else "":
        case "sqlite":
            from firefly_memory.stores.sql.sqlite.database import sqlite_path
            from firefly_memory.stores.sql.sqlite.store import SQLiteStore

            return SQLiteStore(sqlite_path(text), **options)
        case "postgresql" | "postgres":
            from firefly_memory.stores.sql.postgresql.store import PostgreSQLStore

            return PostgreSQLStore(text, **options)
        case "mongodb":
            from firefly_memory.stores.mongodb.store import MongoDBStore

            return MongoDBStore(text, **options)
        case "file":
            from firefly_memory.stores.file import FileStore

            return FileStore(unquote(rest.removeprefix("//")) or ".firefly_memory", **options)
        case "memory" if rest in ("", "//"):
            from firefly_memory.stores.memory import InMemoryStore

            return InMemoryStore(**options)
    # Not the URL itself: it may hold a password.
    known = re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) if colon else None
    problem = f"no store has a URL that starts with {scheme!r}:" if known else "this is not a URL:"
    raise ConfigurationError(f"{problem} use {_EXAMPLES}")
