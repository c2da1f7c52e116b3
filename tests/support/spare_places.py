"""Schemas and databases of servers that tests borrow one after another: to make the tables of a new one, or its
collections, takes several times as long as most tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pymongo

from firefly_memory import MongoDBStore, PostgreSQLStore
from firefly_memory.databases.mongodb.clients import VERSION
from firefly_memory.databases.sql.schema.metadata import VERSION_TABLE
from firefly_memory.facets import all_facets

_DELETE_ROWS = f"""DO $$
DECLARE
    found record;
BEGIN
    SET LOCAL session_replication_role = replica; -- whatever the order of the tables
    FOR found IN
        SELECT oid::regclass AS name, relname FROM pg_class
        WHERE relnamespace = 'SCHEMA_NAME'::regnamespace AND relkind = 'r' AND relname <> '{VERSION_TABLE}'
    LOOP
        EXECUTE 'DELETE FROM ' || found.name
            || CASE found.relname WHEN 'memory_tombstones' THEN ' WHERE id <> $key$key$key$' ELSE '' END;
    END LOOP;
END $$"""
"""What a migration has written is left: the version, and the key of tombstones."""


class _Spares(ABC):
    """Places on one server that have everything but rows."""

    def __init__(self) -> None:
        self._free: dict[tuple[str, ...], list[str]] = defaultdict(list)
        self._made: list[str] = []

    @contextmanager
    def lent(self) -> Iterator[str]:
        """The name of a place with empty tables of all facets that are registered now. The borrower may leave rows there."""
        free = self._free[tuple(each.name for each in all_facets())]
        if not free:
            self._made.append(f"spare_{uuid4().hex[:12]}")
            self.make(self._made[-1])
            free.append(self._made[-1])
        name = free.pop()
        yield name
        self.empty(name)
        free.append(name)

    def close(self) -> None:
        for name in self._made:
            self.drop(name)

    @abstractmethod
    def make(self, name: str) -> None: ...

    @abstractmethod
    def empty(self, name: str) -> None:
        """Delete what a borrower has written."""

    @abstractmethod
    def drop(self, name: str) -> None: ...


class _Schemas(_Spares):
    """Of PostgreSQL."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._server = psycopg.connect(url, autocommit=True)

    def make(self, name: str) -> None:
        with PostgreSQLStore(self._url, schema_name=name, pool_min_size=0):
            pass

    def empty(self, name: str) -> None:
        self._server.execute(_DELETE_ROWS.replace("SCHEMA_NAME", name).encode())

    def drop(self, name: str) -> None:
        self._server.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())

    def close(self) -> None:
        with self._server:
            super().close()


class _Databases(_Spares):
    """Of MongoDB."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(url)
        self._written_when_made: dict[str, list[dict[str, Any]]] = {}

    def make(self, name: str) -> None:
        with MongoDBStore(self._url, database=name):
            self._written_when_made[name] = list(self._client[name][VERSION].find())

    def empty(self, name: str) -> None:
        database = self._client[name]
        for collection in database.list_collection_names():
            database[collection].delete_many({})
        database[VERSION].insert_many(self._written_when_made[name])

    def drop(self, name: str) -> None:
        self._client.drop_database(name)

    def close(self) -> None:
        with self._client:
            super().close()


_of_servers: dict[str, _Spares] = {}


def _of(kind: Callable[[str], _Spares], url: str) -> _Spares:
    if url not in _of_servers:
        _of_servers[url] = kind(url)
    return _of_servers[url]


def lent_schema(url: str) -> AbstractContextManager[str]:
    """A context manager with the name of a schema of the PostgreSQL server, with empty tables."""
    return _of(_Schemas, url).lent()


def lent_database(url: str) -> AbstractContextManager[str]:
    """A context manager with the name of a database of the MongoDB server, with empty collections."""
    return _of(_Databases, url).lent()


@contextmanager
def dropped_at_the_end(url: str) -> Iterator[str]:
    """``url``; what was lent on its server is gone after the block."""
    yield url
    spares = _of_servers.pop(url, None)
    if spares is not None:
        spares.close()
