"""Collections that somebody else made: looked at and read, never written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from typing import Any

import bson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument
from pymongo import ASCENDING

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.databases.mongodb.clients import OwnClients
from firefly_memory.databases.mongodb.collections import NO_TOMBSTONES
from firefly_memory.databases.mongodb.errors import translated

_AT_ONCE = 200  # documents that are in memory

_RAW = CodecOptions(document_class=RawBSONDocument)
_READ: CodecOptions[dict[str, Any]] = CodecOptions(
    tz_aware=True, tzinfo=UTC, datetime_conversion=DatetimeConversion.DATETIME_AUTO
)


class ForeignCollections:
    """What is on a server."""

    def __init__(self, client: Any, db_name: str) -> None:
        self._client = client
        self._db_name = db_name

    def database(self, default: str) -> str:
        """The database that the URL names, or ``default``."""
        name: str = self._client.get_default_database(default).name
        return name

    def names(self, database: str) -> list[str]:
        with self._reading():
            return sorted(self._client[database].list_collection_names())

    def is_ours(self, database: str, collection: str) -> bool:
        """Whether its documents have the ids that this library gives; nobody else's are text."""
        with self._reading():
            return self._client[database][collection].find_one({"_id": {"$type": "string"}}, {"_id": 1}) is not None

    def has_others(self, database: str, collection: str) -> bool:
        """Whether it has documents that this library has not made."""
        with self._reading():
            other = {"_id": {"$not": {"$type": "string"}}, **NO_TOMBSTONES}
            return self._client[database][collection].find_one(other, {"_id": 1}) is not None

    def has_unique(self, database: str, collection: str, fields: set[str]) -> bool:
        """Whether no two documents have the same values in all ``fields``."""
        with self._reading():
            indexes = self._client[database][collection].index_information().values()
        return any(
            each.get("unique")
            and "partialFilterExpression" not in each
            and fields.issuperset(name for name, _ in each["key"])
            for each in indexes
        )

    def estimate(self, database: str, collection: str) -> int:
        """About how many documents there are."""
        with self._reading():
            return int(self._client[database][collection].estimated_document_count())

    def rows(self, database: str, collection: str) -> Iterator[dict[str, Any] | None]:
        """The documents, in the order of namespaces and time; ``None`` for one that is damaged."""
        documents = self._client[database].get_collection(collection, codec_options=_RAW)
        order = [("namespace", ASCENDING), ("created_at", ASCENDING)]
        with self._reading(), documents.find({}, sort=order, batch_size=_AT_ONCE, allow_disk_use=True) as cursor:
            for document in cursor:
                try:
                    read: dict[str, Any] | None = bson.decode(document.raw, _READ)
                except (BSONError, OverflowError, ValueError):
                    read = None
                yield read

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with translated("import-legacy", self._db_name):
            yield


@contextmanager
def foreign_collections(url: str, *, timeout: float) -> Iterator[ForeignCollections]:
    clients = OwnClients(url, "unused", "unused", pool_size=1, timeout=timeout, migrate=False)
    try:
        yield ForeignCollections(clients.blocking().client, clients.db_name)
    finally:
        run_without_loop(clients.close_blocking())
