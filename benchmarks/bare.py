"""The bare drivers, used as their documentation shows, on tables and collections like ours with our durability."""

from __future__ import annotations

import json
import sqlite3
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiosqlite
import asyncpg
import orjson
from bson.codec_options import CodecOptions
from psycopg.types.json import Jsonb, set_json_dumps, set_json_loads
from psycopg_pool import ConnectionPool
from pymongo import DESCENDING, AsyncMongoClient, MongoClient, UpdateOne, WriteConcern

CONTENT = {"vendor": "Acme Corp", "total": 12.5, "lines": [1, 2, 3], "note": "x" * 100}

_COLUMNS = "entry_id, namespace, scope, key, content, metadata, created_at, expires_at, importance"


class Bare(ABC):
    """The operations to compare with, in one mode; blocking ones are coroutines that never suspend."""

    @abstractmethod
    async def save(self, namespace: str, key: str) -> None: ...

    @abstractmethod
    async def load_by_key(self, namespace: str, key: str) -> Any: ...

    @abstractmethod
    async def load(self, namespace: str) -> list[Any]: ...

    @abstractmethod
    async def save_many(self, namespace: str, count: int, expires_at: datetime | None = None) -> None: ...

    @abstractmethod
    async def cleanup(self) -> int: ...

    @abstractmethod
    async def close(self) -> None: ...


def new_id() -> str:
    return str(uuid4())


# SQLite

_SQLITE_UPSERT = f"""INSERT INTO memory_entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (entry_id) DO UPDATE SET scope = excluded.scope, key = excluded.key, content = excluded.content,
    metadata = excluded.metadata, expires_at = excluded.expires_at, importance = excluded.importance
    WHERE memory_entries.namespace = excluded.namespace"""
_SQLITE_NEWEST = f"""SELECT {_COLUMNS} FROM memory_entries WHERE namespace = ? AND key = ?
    AND (expires_at IS NULL OR expires_at > ?) ORDER BY created_at DESC, entry_id DESC LIMIT 1"""
_SQLITE_LOAD = f"""SELECT {_COLUMNS} FROM memory_entries WHERE namespace = ?
    AND (expires_at IS NULL OR expires_at > ?) ORDER BY created_at, entry_id"""
_SQLITE_CLEANUP = "DELETE FROM memory_entries WHERE expires_at <= ?"


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _sqlite_row(namespace: str, key: str | None, expires_at: datetime | None = None) -> tuple[Any, ...]:
    expiry = None if expires_at is None else expires_at.isoformat()
    return new_id(), namespace, "working", key, json.dumps(CONTENT), "{}", _now(), expiry, 0.5


def _decoded(row: Any) -> dict[str, Any]:
    return {"entry_id": row[0], "key": row[3], "content": orjson.loads(row[4]), "metadata": orjson.loads(row[5])}


class BareSQLite(Bare):
    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous=FULL")

    async def save(self, namespace: str, key: str) -> None:
        self._connection.execute(_SQLITE_UPSERT, _sqlite_row(namespace, key))

    async def load_by_key(self, namespace: str, key: str) -> Any:
        return _decoded(self._connection.execute(_SQLITE_NEWEST, (namespace, key, _now())).fetchone())

    async def load(self, namespace: str) -> list[Any]:
        return [_decoded(row) for row in self._connection.execute(_SQLITE_LOAD, (namespace, _now()))]

    async def save_many(self, namespace: str, count: int, expires_at: datetime | None = None) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        rows = [_sqlite_row(namespace, f"key {number}", expires_at) for number in range(count)]
        self._connection.executemany(_SQLITE_UPSERT, rows)
        self._connection.execute("COMMIT")

    async def cleanup(self) -> int:
        return self._connection.execute(_SQLITE_CLEANUP, (_now(),)).rowcount

    async def close(self) -> None:
        self._connection.close()


class BareAiosqlite(Bare):
    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, path: Path) -> BareAiosqlite:
        connection = await aiosqlite.connect(path, isolation_level=None)
        await connection.execute("PRAGMA synchronous=FULL")
        return cls(connection)

    async def save(self, namespace: str, key: str) -> None:
        await self._connection.execute(_SQLITE_UPSERT, _sqlite_row(namespace, key))

    async def load_by_key(self, namespace: str, key: str) -> Any:
        async with self._connection.execute(_SQLITE_NEWEST, (namespace, key, _now())) as cursor:
            row = await cursor.fetchone()
        return _decoded(row)

    async def load(self, namespace: str) -> list[Any]:
        async with self._connection.execute(_SQLITE_LOAD, (namespace, _now())) as cursor:
            return [_decoded(row) for row in await cursor.fetchall()]

    async def save_many(self, namespace: str, count: int, expires_at: datetime | None = None) -> None:
        await self._connection.execute("BEGIN IMMEDIATE")
        rows = [_sqlite_row(namespace, f"key {number}", expires_at) for number in range(count)]
        await self._connection.executemany(_SQLITE_UPSERT, rows)
        await self._connection.execute("COMMIT")

    async def cleanup(self) -> int:
        cursor = await self._connection.execute(_SQLITE_CLEANUP, (_now(),))
        return cursor.rowcount

    async def close(self) -> None:
        await self._connection.close()


# PostgreSQL

_TABLE = "bare.memory_entries"
_POSTGRESQL_UPSERT = f"""INSERT INTO {_TABLE} ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (entry_id) DO UPDATE SET scope = excluded.scope, key = excluded.key, content = excluded.content,
    metadata = excluded.metadata, expires_at = excluded.expires_at, importance = excluded.importance
    WHERE memory_entries.namespace = excluded.namespace"""
_POSTGRESQL_NEWEST = f"""SELECT {_COLUMNS} FROM {_TABLE} WHERE namespace COLLATE "C" = $1 AND key COLLATE "C" = $2
    AND (expires_at IS NULL OR expires_at > $3) ORDER BY created_at DESC, entry_id COLLATE "C" DESC LIMIT 1"""
_POSTGRESQL_LOAD = f"""SELECT {_COLUMNS} FROM {_TABLE} WHERE namespace COLLATE "C" = $1
    AND (expires_at IS NULL OR expires_at > $2) ORDER BY created_at, entry_id COLLATE "C" """
_POSTGRESQL_CLEANUP = f"DELETE FROM {_TABLE} WHERE expires_at <= $1"


def _postgresql_row(namespace: str, key: str | None, expires_at: datetime | None = None) -> tuple[Any, ...]:
    return new_id(), namespace, "working", key, CONTENT, {}, datetime.now(UTC), expires_at, 0.5


async def _use_orjson(connection: Any) -> None:
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        format="binary",
        encoder=lambda value: b"\x01" + orjson.dumps(value),
        decoder=lambda data: orjson.loads(data[1:]),
    )


class BareAsyncpg(Bare):
    def __init__(self, pool: Any) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, url: str) -> BareAsyncpg:
        return cls(await asyncpg.create_pool(url, min_size=10, max_size=10, init=_use_orjson))

    async def save(self, namespace: str, key: str) -> None:
        await self._pool.execute(_POSTGRESQL_UPSERT, *_postgresql_row(namespace, key))

    async def load_by_key(self, namespace: str, key: str) -> Any:
        return await self._pool.fetchrow(_POSTGRESQL_NEWEST, namespace, key, datetime.now(UTC))

    async def load(self, namespace: str) -> list[Any]:
        found: list[Any] = await self._pool.fetch(_POSTGRESQL_LOAD, namespace, datetime.now(UTC))
        return found

    async def save_many(self, namespace: str, count: int, expires_at: datetime | None = None) -> None:
        rows = [_postgresql_row(namespace, f"key {number}", expires_at) for number in range(count)]
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.executemany(_POSTGRESQL_UPSERT, rows)

    async def cleanup(self) -> int:
        return int((await self._pool.execute(_POSTGRESQL_CLEANUP, datetime.now(UTC))).split()[-1])

    async def close(self) -> None:
        await self._pool.close()


def _numbered(sql: str) -> str:
    for number in range(9, 0, -1):
        sql = sql.replace(f"${number}", "%s")
    return sql


class BarePsycopg(Bare):
    def __init__(self, url: str) -> None:
        set_json_dumps(orjson.dumps)
        set_json_loads(orjson.loads)
        self._pool = ConnectionPool(url, min_size=10, max_size=10, kwargs={"autocommit": True}, open=True)

    async def save(self, namespace: str, key: str) -> None:
        row = list(_postgresql_row(namespace, key))
        row[4], row[5] = Jsonb(row[4]), Jsonb(row[5])
        with self._pool.connection() as connection:
            connection.execute(_numbered(_POSTGRESQL_UPSERT), row)

    async def load_by_key(self, namespace: str, key: str) -> Any:
        with self._pool.connection() as connection:
            return connection.execute(_numbered(_POSTGRESQL_NEWEST), (namespace, key, datetime.now(UTC))).fetchone()

    async def load(self, namespace: str) -> list[Any]:
        with self._pool.connection() as connection:
            return connection.execute(_numbered(_POSTGRESQL_LOAD), (namespace, datetime.now(UTC))).fetchall()

    async def save_many(self, namespace: str, count: int, expires_at: datetime | None = None) -> None:
        rows = []
        for number in range(count):
            row = list(_postgresql_row(namespace, f"key {number}", expires_at))
            row[4], row[5] = Jsonb(row[4]), Jsonb(row[5])
            rows.append(row)
        with self._pool.connection() as connection, connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(_numbered(_POSTGRESQL_UPSERT), rows)

    async def cleanup(self) -> int:
        with self._pool.connection() as connection:
            return connection.execute(_numbered(_POSTGRESQL_CLEANUP), (datetime.now(UTC),)).rowcount

    async def close(self) -> None:
        self._pool.close()


# MongoDB


def _mongodb_update(namespace: str, key: str, expires_at: datetime | None = None) -> tuple[Any, Any]:
    fields = {
        "scope": "working", "key": key, "content": CONTENT, "metadata": {}, "expires_at": expires_at, "importance": 0.5,
    }  # fmt: skip
    return {"entry_id": new_id(), "namespace": namespace}, {
        "$set": fields,
        "$setOnInsert": {"created_at": datetime.now(UTC)},
    }


def _live(namespace: str) -> dict[str, Any]:
    return {"namespace": namespace, "$or": [{"expires_at": None}, {"expires_at": {"$gt": datetime.now(UTC)}}]}


_MONGODB = {
    "codec_options": CodecOptions(tz_aware=True, tzinfo=UTC),
    "write_concern": WriteConcern("majority", j=True),
}


class BareMongoDB(Bare):
    def __init__(self, url: str) -> None:
        self._client: AsyncMongoClient[Any] = AsyncMongoClient(url, maxPoolSize=10)
        self._entries: Any = self._client.bare.get_collection("entries", **_MONGODB)  # type: ignore[arg-type]

    async def save(self, namespace: str, key: str) -> None:
        where, update = _mongodb_update(namespace, key)
        await self._entries.update_one(where, update, upsert=True)

    async def load_by_key(self, namespace: str, key: str) -> Any:
        return await self._entries.find_one({"key": key, **_live(namespace)}, sort=[("_id", DESCENDING)])

    async def load(self, namespace: str) -> list[Any]:
        found: list[Any] = await self._entries.find(_live(namespace)).sort("_id").to_list(None)
        return found

    async def save_many(self, namespace: str, count: int, expires_at: datetime | None = None) -> None:
        updates = [
            UpdateOne(*_mongodb_update(namespace, f"key {number}", expires_at), upsert=True) for number in range(count)
        ]
        async with self._client.start_session() as session, await session.start_transaction():
            await self._entries.bulk_write(updates, session=session)

    async def cleanup(self) -> int:
        deleted = await self._entries.delete_many({"expires_at": {"$lte": datetime.now(UTC)}})
        return int(deleted.deleted_count)

    async def close(self) -> None:
        await self._client.close()


class BareBlockingMongoDB(Bare):
    def __init__(self, url: str) -> None:
        self._client: MongoClient[Any] = MongoClient(url, maxPoolSize=10)
        self._entries: Any = self._client.bare.get_collection("entries", **_MONGODB)  # type: ignore[arg-type]

    async def save(self, namespace: str, key: str) -> None:
        where, update = _mongodb_update(namespace, key)
        self._entries.update_one(where, update, upsert=True)

    async def load_by_key(self, namespace: str, key: str) -> Any:
        return self._entries.find_one({"key": key, **_live(namespace)}, sort=[("_id", DESCENDING)])

    async def load(self, namespace: str) -> list[Any]:
        return list(self._entries.find(_live(namespace)).sort("_id"))

    async def save_many(self, namespace: str, count: int, expires_at: datetime | None = None) -> None:
        updates = [
            UpdateOne(*_mongodb_update(namespace, f"key {number}", expires_at), upsert=True) for number in range(count)
        ]
        with self._client.start_session() as session, session.start_transaction():
            self._entries.bulk_write(updates, session=session)

    async def cleanup(self) -> int:
        return int(self._entries.delete_many({"expires_at": {"$lte": datetime.now(UTC)}}).deleted_count)

    async def close(self) -> None:
        self._client.close()
