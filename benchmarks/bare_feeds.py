"""The bare drivers, keeping the messages of agents by hand: append one, and read the newest of one kind.

They have our tables, or documents as simple as can be, with indexes as good as ours and our durability. A message gets
its number in the best safe way each of them has, and each read is a range of an index, or one range for each agent.
"""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import aiosqlite
import asyncpg
import orjson
import psycopg
from bson.codec_options import CodecOptions
from psycopg_pool import ConnectionPool
from pymongo import DESCENDING, AsyncMongoClient, MongoClient, WriteConcern
from pymongo.errors import DuplicateKeyError

from benchmarks.bare import new_id
from benchmarks.feed_messages import (
    BY_NUMBER,
    COLLECTION,
    FEEDS,
    MESSAGES,
    OF_AGENT,
    OF_CONVERSATION,
    Message,
    document,
    is_conversation,
)
from benchmarks.stores import BARE


class Numbered(NamedTuple):
    number: int
    message: Message
    created_at: Any


class Feeds(ABC):
    """What is measured, in one mode; blocking ones are coroutines that never suspend. Messages are oldest first."""

    @abstractmethod
    async def append(self, location: str, message: Message) -> int: ...

    @abstractmethod
    async def agent(self, location: str, agent_key: str, limit: int) -> list[Message]: ...

    @abstractmethod
    async def team(self, location: str, agent_keys: Sequence[str], limit: int) -> list[Message]: ...

    @abstractmethod
    async def conversation(self, location: str, limit: int) -> list[Message]: ...

    @abstractmethod
    async def after(self, location: str, number: int, limit: int) -> Sequence[Any]:
        """Things with a ``number`` and a ``message``."""


class BareFeeds(Feeds):
    @abstractmethod
    async def close(self) -> None: ...


def _oldest_first(rows: Sequence[Any]) -> list[Message]:
    return [orjson.loads(row[0]) for row in reversed(rows)]


# SQL. Parameters are written as PostgreSQL has them.

_HEAD = f"""INSERT INTO {FEEDS} VALUES ($1, 1, 0, $2, $2) ON CONFLICT (location) DO UPDATE
    SET newest = memory_feeds.newest + 1, updated_at = excluded.updated_at RETURNING newest"""
_OF = "FROM {schema}memory_feed_messages WHERE location = $1"
_NEWEST = "ORDER BY number DESC LIMIT"
_AGENT = f"SELECT {{message}} {_OF} AND agent_key = $2 {_NEWEST} $3"
_CONVERSATION = f"SELECT {{message}} {_OF} AND is_conversation IS {{true}} {_NEWEST} $2"
_AFTER = f"SELECT number, {{message}}, created_at {_OF} AND number > $2 ORDER BY number LIMIT $3"
_NUMBERS_OF_AGENT = f"SELECT number {_OF} AND agent_key = given.value {_NEWEST} $3"


class _Statements(NamedTuple):
    agent: str
    team: str
    conversation: str
    after: str


def _reads(team: str, **names: str) -> _Statements:
    return _Statements(*[sql.format(**names) for sql in (_AGENT, team, _CONVERSATION, _AFTER)])


class _BareSQL(BareFeeds):
    _reads: _Statements

    @abstractmethod
    async def _fetch(self, sql: str, *values: Any) -> Sequence[Any]: ...

    def _keys(self, agent_keys: Sequence[str]) -> Any:
        return agent_keys

    async def agent(self, location: str, agent_key: str, limit: int) -> list[Message]:
        return _oldest_first(await self._fetch(self._reads.agent, location, agent_key, limit))

    async def team(self, location: str, agent_keys: Sequence[str], limit: int) -> list[Message]:
        return _oldest_first(await self._fetch(self._reads.team, location, self._keys(agent_keys), limit))

    async def conversation(self, location: str, limit: int) -> list[Message]:
        return _oldest_first(await self._fetch(self._reads.conversation, location, limit))

    async def after(self, location: str, number: int, limit: int) -> Sequence[Numbered]:
        rows = await self._fetch(self._reads.after, location, number, limit)
        return [Numbered(number, orjson.loads(message), created_at) for number, message, created_at in rows]


def _values(message: Message) -> tuple[Any, ...]:
    kinds = is_conversation(message), "is_global" in message
    return message.get("agent_key"), *kinds, orjson.dumps(message).decode(), new_id()


# A query cannot join with a subquery that has a LIMIT of its own for each row, but can look into one.
_SQLITE_TEAM = f"""WITH found AS (SELECT own.number FROM json_each($2) AS given CROSS JOIN memory_feed_messages AS own
    WHERE own.location = $1 AND own.number IN ({_NUMBERS_OF_AGENT}) {_NEWEST} $3)
    SELECT {{message}} {_OF} AND number IN (SELECT number FROM found) {_NEWEST} $3"""
_SQLITE_HEAD = _HEAD.replace("$", "?")
_SQLITE_INSERT = f"INSERT INTO {MESSAGES} VALUES (?1, ?3, ?4, ?5, ?6, ?7, ?8, ?2)"


class _BareSQLiteFeeds(_BareSQL):
    _reads = _Statements(
        *[sql.replace("$", "?") for sql in _reads(_SQLITE_TEAM, message="message", schema="", true="1")]
    )

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()  # a connection has one transaction

    def _keys(self, agent_keys: Sequence[str]) -> Any:
        return orjson.dumps(agent_keys).decode()

    async def append(self, location: str, message: Message) -> int:
        values = location, datetime.now(UTC).isoformat()
        row = _values(message)
        async with self._one_at_a_time:
            await self._fetch("BEGIN IMMEDIATE")
            try:
                ((number,),) = await self._fetch(_SQLITE_HEAD, *values)
                await self._fetch(_SQLITE_INSERT, *values, number, *row)
                await self._fetch("COMMIT")
            except BaseException:
                await self._fetch("ROLLBACK")
                raise
        return int(number)


class BareSQLiteFeeds(_BareSQLiteFeeds):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous=FULL")

    async def _fetch(self, sql: str, *values: Any) -> Sequence[Any]:
        return self._connection.execute(sql, values).fetchall()

    async def close(self) -> None:
        self._connection.close()


class BareAiosqliteFeeds(_BareSQLiteFeeds):
    def __init__(self, connection: aiosqlite.Connection) -> None:
        super().__init__()
        self._connection = connection

    @classmethod
    async def open(cls, path: Path) -> BareAiosqliteFeeds:
        connection = await aiosqlite.connect(path, isolation_level=None)
        await connection.execute("PRAGMA synchronous=FULL")
        return cls(connection)

    async def _fetch(self, sql: str, *values: Any) -> Sequence[Any]:
        return list(await self._connection.execute_fetchall(sql, values))

    async def close(self) -> None:
        await self._connection.close()


_POSTGRESQL_TEAM = f"""SELECT {{message}} {_OF} AND number = ANY (ARRAY(
    SELECT own.number FROM unnest($2::text[]) AS given(value) CROSS JOIN LATERAL ({_NUMBERS_OF_AGENT}) AS own
    ORDER BY own.number DESC LIMIT $3)) {_NEWEST} $3"""
_POSTGRESQL_APPEND = f"""WITH head AS ({_HEAD.replace("INTO ", f"INTO {BARE}.")}) INSERT INTO {BARE}.{MESSAGES}
    SELECT $1, head.newest, $3, $4, $5, $6::jsonb, $7, $2 FROM head RETURNING number"""


class _BarePostgreSQLFeeds(_BareSQL):
    _reads = _reads(_POSTGRESQL_TEAM, message="message::text", schema=f"{BARE}.", true="true")

    async def append(self, location: str, message: Message) -> int:
        ((number,),) = await self._fetch(_POSTGRESQL_APPEND, location, datetime.now(UTC), *_values(message))
        return int(number)


class BareAsyncpgFeeds(_BarePostgreSQLFeeds):
    def __init__(self, pool: Any) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, url: str) -> BareAsyncpgFeeds:
        return cls(await asyncpg.create_pool(url, min_size=10, max_size=10))

    async def _fetch(self, sql: str, *values: Any) -> Sequence[Any]:
        rows: list[Any] = await self._pool.fetch(sql, *values)
        return rows

    async def close(self) -> None:
        await self._pool.close()


class BarePsycopgFeeds(_BarePostgreSQLFeeds):
    def __init__(self, url: str) -> None:
        options = {"autocommit": True, "cursor_factory": psycopg.RawCursor}
        self._pool = ConnectionPool(url, min_size=10, max_size=10, kwargs=options, open=True)

    async def _fetch(self, sql: Any, *values: Any) -> Sequence[Any]:
        with self._pool.connection() as connection:
            return connection.execute(sql, values).fetchall()

    async def close(self) -> None:
        self._pool.close()


# MongoDB

_OPTIONS: dict[str, Any] = {
    "codec_options": CodecOptions(tz_aware=True, tzinfo=UTC),
    "write_concern": WriteConcern("majority", j=True),
}
_SHOWN = {"_id": 0, "message": 1}
_NUMBERED = {"_id": 0, "number": 1, "message": 1, "created_at": 1}
_MOST_RANGES = 200  # so many ranges of an index are merged in their order; more of them are read whole, and sorted


class BareMongoFeeds(BareFeeds):
    """Without a transaction: the unique index on its number lets one of several writers have it.

    The writer of a message knows where the next one goes, unless somebody else has written meanwhile.
    """

    def __init__(self, client: AsyncMongoClient[Any] | MongoClient[Any]) -> None:
        self._client = client
        self._messages: Any = client.get_database(BARE).get_collection(COLLECTION, **_OPTIONS)
        self._newest: dict[str, int] = {}

    async def append(self, location: str, message: Message) -> int:
        newest = self._newest.get(location)
        while True:
            if newest is None:
                newest = await self._newest_number(location)
            try:
                await _settled(self._messages.insert_one(document(location, newest + 1, message)))
            except DuplicateKeyError:
                newest = None
            else:
                self._newest[location] = newest + 1
                return newest + 1

    async def _newest_number(self, location: str) -> int:
        newest = [("number", DESCENDING)]
        found = await _settled(self._messages.find_one({"location": location}, {"_id": 0, "number": 1}, sort=newest))
        return int(found["number"]) if found else 0

    async def agent(self, location: str, agent_key: str, limit: int) -> list[Message]:
        return await self._last({"location": location, "agent_key": agent_key}, OF_AGENT, limit)

    async def team(self, location: str, agent_keys: Sequence[str], limit: int) -> list[Message]:
        groups = [agent_keys[first : first + _MOST_RANGES] for first in range(0, len(agent_keys), _MOST_RANGES)]
        wanted = [{"location": location, "agent_key": {"$in": group}} for group in groups]
        if len(wanted) == 1:
            return await self._last(wanted[0], OF_AGENT, limit)
        newest: list[Any] = [{"$sort": {"number": DESCENDING}}, {"$limit": limit}]
        first, *others = ([{"$match": each}, *newest] for each in wanted)
        unions = [{"$unionWith": {"coll": COLLECTION, "pipeline": each}} for each in others]
        finding = self._messages.aggregate([*first, *unions, *newest, {"$project": _SHOWN}], hint=dict(OF_AGENT))
        return [each["message"] for each in reversed(await _settled((await _settled(finding)).to_list(None)))]

    async def conversation(self, location: str, limit: int) -> list[Message]:
        return await self._last({"location": location, "is_conversation": True}, OF_CONVERSATION, limit)

    async def after(self, location: str, number: int, limit: int) -> Sequence[Numbered]:
        cursor = self._messages.find({"location": location, "number": {"$gt": number}}, _NUMBERED, hint=BY_NUMBER)
        found = await _settled(cursor.sort("number").limit(limit).to_list(None))
        return [Numbered(each["number"], each["message"], each["created_at"]) for each in found]

    async def _last(self, wanted: dict[str, Any], index: Any, limit: int) -> list[Message]:
        cursor = self._messages.find(wanted, _SHOWN, hint=index).sort("number", DESCENDING).limit(limit)
        return [each["message"] for each in reversed(await _settled(cursor.to_list(None)))]

    async def close(self) -> None:
        await _settled(self._client.close())


async def _settled(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
