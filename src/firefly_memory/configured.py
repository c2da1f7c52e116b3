"""The store that the settings describe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import SecretStr

from firefly_memory.by_url import connect
from firefly_memory.errors import ConfigurationError
from firefly_memory.settings import PREFIX, MemorySettings
from firefly_memory.stores.base import EntryStore


def configured_store(settings: MemorySettings) -> EntryStore:
    """Open it. ``ConfigurationError`` names what is missing."""
    # Each store is imported when it is wanted: the others' drivers may not be installed.
    url = settings.store_url
    if url is not None:
        with _naming("URL"):
            return connect(url, **url_options(url, settings))
    match settings.backend:
        case "file":
            from firefly_memory.stores.file import FileStore

            with _naming("FILE_DIR"):
                return FileStore(settings.file_dir)
        case "sqlite":
            from firefly_memory.stores.sql.sqlite.store import SQLiteStore

            sqlite_path = _needed(settings.sqlite_path, "sqlite", "SQLITE_PATH")
            with _naming("SQLITE_PATH"):
                return SQLiteStore(sqlite_path, migrate=settings.migrate)
        case "postgres":
            from firefly_memory.stores.sql.postgresql.store import PostgreSQLStore

            postgres_url = _needed(_secret(settings.postgres_url), "postgres", "POSTGRES_URL")
            with _naming("POSTGRES_…"):
                return PostgreSQLStore(
                    postgres_url,
                    pool_size=settings.postgres_pool_size,
                    pool_min_size=settings.postgres_pool_min_size,
                    schema_name=settings.postgres_schema,
                    pooler=settings.postgres_pooler or None,
                    migrate=settings.migrate,
                )
        case "mongodb":
            from firefly_memory.stores.mongodb.store import MongoDBStore

            mongodb_url = _needed(_secret(settings.mongodb_url), "mongodb", "MONGODB_URL")
            with _naming("MONGODB_…"):
                return MongoDBStore(
                    mongodb_url,
                    database=settings.mongodb_database,
                    collection=settings.mongodb_collection,
                    pool_size=settings.mongodb_pool_size,
                    migrate=settings.migrate,
                )
        case _:
            from firefly_memory.stores.memory import InMemoryStore

            return InMemoryStore()


def url_options(url: str, settings: MemorySettings) -> dict[str, Any]:
    """What a URL cannot say."""
    options: dict[str, Any] = {}
    if url.lower().startswith("postgres"):
        options = {"schema_name": settings.postgres_schema, "pooler": settings.postgres_pooler or None}
    if not (settings.migrate or url.lower().startswith(("file:", "memory:"))):  # which have nothing to migrate
        options["migrate"] = False
    return options


@contextmanager
def _naming(variable: str) -> Iterator[None]:
    """An argument that is refused came from this variable."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{PREFIX}{variable}: {error}") from None


def _secret(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()


def _needed(value: str | None, backend: str, variable: str) -> str:
    if not value:
        raise ConfigurationError(f"{PREFIX}BACKEND is {backend}, which needs {PREFIX}{variable}, and that is not set")
    return value
