"""The bare drivers, keeping facts by hand: in our tables, with our indexes and our durability.

They count accesses and confirmations, and keep what a fact said before. They know nothing of people who were merged or
erased, nor of the language of an index: their words are those of the text, not stemmed.
"""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import aiosqlite
import asyncpg
import orjson
import psycopg
from psycopg_pool import ConnectionPool

from benchmarks.bare import new_id
from benchmarks.long_term_facts import EVERYBODY, Ids, Whose

Pair = tuple[str, Any]
"""A key and its value."""


class LongTerm(ABC):
    """What is measured, in one mode; blocking ones are coroutines that never suspend."""

    @abstractmethod
    async def get(self, key: str, ids: Ids) -> Any:
        """The value in the most specific scope. The fact counts the access."""

    @abstractmethod
    async def find(self, key: str, whose: Whose) -> Any:
        """The value in one scope, from the whole fact. Nothing is counted."""

    @abstractmethod
    async def set(self, key: str, value: str, whose: Whose) -> int:
        """How often the fact is confirmed now."""

    @abstractmethod
    async def listed(self, ids: Ids, limit: int) -> list[Pair]:
        """The facts of the largest confidence in all scopes of these ids."""

    @abstractmethod
    async def search(self, query: str, ids: Ids, limit: int) -> list[Pair]: ...

    @abstractmethod
    async def context(self, user_id: str) -> dict[str, Any]: ...

    @abstractmethod
    async def recall(self, key: str, user_id: str) -> str:
        """``key = value``, of the user's or the global scope."""

    @abstractmethod
    async def remember(self, key: str, value: str) -> str:
        """``Remembered: key = value (updated)``, in the global scope."""


class BareLongTerm(LongTerm):
    @abstractmethod
    async def close(self) -> None: ...

    async def recall(self, key: str, user_id: str) -> str:
        return f"{key} = {await self.get(key, Ids(user_id=user_id))}"

    async def remember(self, key: str, value: str) -> str:
        confirmed = await self.set(key, value, EVERYBODY)
        return f"Remembered: {key} = {value} ({'created' if confirmed == 1 else 'updated'})"


def scopes_of(ids: Ids) -> list[str]:
    """The words of the scopes of these ids, the most specific first."""
    named = [("session", ids.session_id), ("user", ids.user_id), ("agent", ids.agent_id)]
    return [*(Whose(scope, name).word for scope, name in named if name is not None), EVERYBODY.word]


def searchable(key: str, value: str) -> str:
    return f"{key.casefold().replace('_', ' ')}\n{value.casefold().replace('-', ' ')}"


def words_of(whose: Whose, text: str) -> list[str]:
    return [whose.word, *text.split()]


def owner_of(whose: Whose) -> str | None:
    return whose.id if whose.scope == "user" else None


# SQL

FACTS, VERSIONS, USERS = "memory_facts", "memory_fact_versions", "memory_users"
_FIELDS = (
    "key, value, id, fact_type, fact_scope, scope_id, owner, confidence, times_confirmed, times_contradicted, "
    "source_episode_id, access_count, last_accessed, valid_from, created_at, newest"
)
_PERSON = "canonical_id, display_name, total_conversations, last_conversation_at, first_seen"
_ADDED = (
    "id, space, fact_scope, scope_id, key, value, fact_type, owner, written_by, valid_from, created_at, newest, scope, "
    "searchable, words, confidence, times_confirmed, times_contradicted, versions, access_count, position"
)
_AS_NEW = "1.0, 1, 0, 0, 0, 0"
_OF_VERSION = "fact_id, number, value, confidence, source_episode_id, owner, valid_from, superseded_at"


def _decoded(rows: Sequence[Any]) -> list[Pair]:
    return [(row[0], orjson.loads(row[1])) for row in rows]


class _BareSQL(BareLongTerm):
    schema: str
    by_id: ClassVar[str] = "id"

    def __init__(self) -> None:
        self._made: dict[tuple[int, bool], str] = {}

    @abstractmethod
    async def _fetch(self, sql: str, *values: Any) -> Sequence[Any]: ...

    def _table(self, name: str) -> str:
        return f"{self.schema}.{name}"

    async def find(self, key: str, whose: Whose) -> Any:
        found = f"SELECT {_FIELDS} FROM {self._table(FACTS)} WHERE scope = $1 AND key = $2"
        rows = await self._fetch(found, whose.word, key)
        return _decoded(rows)[0][1]

    async def listed(self, ids: Ids, limit: int) -> list[Pair]:
        return await self._in_order(scopes_of(ids), limit)

    async def search(self, query: str, ids: Ids, limit: int) -> list[Pair]:
        return await self._in_order(scopes_of(ids), limit, f"%{'%'.join(query.split())}%")

    async def context(self, user_id: str) -> dict[str, Any]:
        word = Whose("user", user_id).word
        found = f"SELECT {_PERSON} FROM {self._table(USERS)} WHERE word = $1"
        ((name, *about),) = await self._fetch(found, word)
        facts = await self._in_order([word], 100)
        return {"user_id": name, "facts": facts, "about": about}

    async def _in_order(self, scopes: list[str], limit: int, pattern: str | None = None) -> list[Pair]:
        shape = len(scopes), pattern is not None
        if shape not in self._made:
            self._made[shape] = self._ordered(*shape)
        values = [limit] if pattern is None else [limit, pattern]
        return _decoded(await self._fetch(self._made[shape], *values, *scopes))

    def _ordered(self, scopes: int, has_pattern: bool) -> str:
        """Each scope is a range of an index, no longer than the list."""
        first = 3 if has_pattern else 2
        fits = "AND confidence >= 0.5 AND searchable LIKE $2" if has_pattern else ""
        in_order = f"ORDER BY confidence DESC, newest DESC, {self.by_id}"
        parts = [
            f"SELECT * FROM (SELECT number, confidence, newest, id FROM {self._table(FACTS)} "
            f"WHERE scope = ${first + each} {fits} {in_order} LIMIT $1) AS of_{each}"
            for each in range(scopes)
        ]
        these = f"SELECT number FROM ({' UNION ALL '.join(parts)}) AS found {in_order} LIMIT $1"
        return f"SELECT {_FIELDS} FROM {self._table(FACTS)} WHERE number IN ({these}) {in_order}"


class _BareSQLite(_BareSQL):
    schema = "main"

    def __init__(self) -> None:
        super().__init__()
        self._one_at_a_time = asyncio.Lock()  # a connection has one transaction

    async def get(self, key: str, ids: Ids) -> Any:
        scopes = scopes_of(ids)
        names = [f"?{number}" for number in range(3, 3 + len(scopes))]
        ranks = " ".join(f"WHEN {name} THEN {rank}" for rank, name in enumerate(names))
        found = f"SELECT number FROM {FACTS} WHERE scope IN ({', '.join(names)}) AND key = ?1"
        first = f"{found} ORDER BY CASE scope {ranks} END LIMIT 1"
        counted = "access_count = access_count + 1, last_accessed = ?2"
        update = f"UPDATE {FACTS} SET {counted} WHERE number = ({first}) RETURNING value"
        async with self._one_at_a_time:
            rows = await self._fetch(update, key, _now(), *scopes)
        return orjson.loads(rows[0][0])

    async def set(self, key: str, value: str, whose: Whose) -> int:
        now, encoded, text = _now(), orjson.dumps(value).decode(), searchable(key, value)
        words = " ".join(words_of(whose, text))
        async with self._one_at_a_time:
            await self._fetch("BEGIN IMMEDIATE")
            try:
                confirmed = await self._set(key, encoded, whose, now, text, words)
                await self._fetch("COMMIT")
            except BaseException:
                await self._fetch("ROLLBACK")
                raise
        return confirmed

    async def _set(self, key: str, value: str, whose: Whose, now: str, text: str, words: str) -> int:
        there = await self._fetch(f"SELECT number, value FROM {FACTS} WHERE scope = ?1 AND key = ?2", whose.word, key)
        if not there:
            name = new_id()
            given = ", ".join(f"?{number}" for number in range(1, 16))
            insert = f"INSERT INTO {FACTS} ({_ADDED}) VALUES ({given}, {_AS_NEW})"
            kinds = name, "default", whose.scope, whose.id, key, value, "world_knowledge", owner_of(whose), name
            await self._fetch(insert, *kinds, now, now, now, whose.word, text, words)
            return 1
        changed = "times_confirmed = times_confirmed + 1, newest = ?2, written_by = ?3"
        number, before = there[0]
        values: tuple[Any, ...] = number, now, new_id()
        if before != value:
            old = f"SELECT id, versions + 1, value, confidence, source_episode_id, owner, valid_from, ?2 FROM {FACTS}"
            await self._fetch(f"INSERT INTO {VERSIONS} ({_OF_VERSION}) {old} WHERE number = ?1", number, now)
            changed += ", value = ?4, searchable = ?5, words = ?6, versions = versions + 1, valid_from = ?2"
            values = (*values, value, text, words)
        update = f"UPDATE {FACTS} SET {changed} WHERE number = ?1 RETURNING times_confirmed"
        return int((await self._fetch(update, *values))[0][0])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


class BareSQLiteLongTerm(_BareSQLite):
    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous=FULL")

    async def _fetch(self, sql: str, *values: Any) -> Sequence[Any]:
        return self._connection.execute(sql.replace("$", "?"), values).fetchall()

    async def close(self) -> None:
        self._connection.close()


class BareAiosqliteLongTerm(_BareSQLite):
    def __init__(self, connection: aiosqlite.Connection) -> None:
        super().__init__()
        self._connection = connection

    @classmethod
    async def open(cls, path: str | Path) -> BareAiosqliteLongTerm:
        connection = await aiosqlite.connect(path, isolation_level=None)
        await connection.execute("PRAGMA synchronous=FULL")
        return cls(connection)

    async def _fetch(self, sql: str, *values: Any) -> Sequence[Any]:
        return list(await self._connection.execute_fetchall(sql.replace("$", "?"), values))

    async def close(self) -> None:
        await self._connection.close()


class _BarePostgreSQL(_BareSQL):
    by_id = 'id COLLATE "C"'

    def __init__(self, schema: str) -> None:
        super().__init__()
        self.schema = schema
        facts, versions = self._table(FACTS), self._table(VERSIONS)
        self._get = f"""WITH found AS (SELECT number FROM {facts} WHERE scope = ANY ($1::text[]) AND key = $2
            ORDER BY array_position($1::text[], scope) LIMIT 1)
            UPDATE {facts} AS f SET access_count = access_count + 1, last_accessed = $3 FROM found
            WHERE f.number = found.number RETURNING f.value"""
        said = "id, versions + 1, value, confidence, source_episode_id, owner, valid_from, $10"
        same = "f.value = excluded.value"
        given = "$1, 'default', $2, $3, $4, $5, $6, $7, $1, $10, $10, $10, $8, $9, $11"
        self._set = f"""WITH old AS (SELECT * FROM {facts} WHERE scope = $8 AND key = $4 FOR NO KEY UPDATE),
            version AS (INSERT INTO {versions} ({_OF_VERSION}) SELECT {said} FROM old WHERE value <> $5)
            INSERT INTO {facts} AS f ({_ADDED}) VALUES ({given}, {_AS_NEW}) ON CONFLICT (scope, key) DO UPDATE
            SET value = excluded.value, times_confirmed = f.times_confirmed + 1, newest = excluded.newest,
            versions = f.versions + CASE WHEN {same} THEN 0 ELSE 1 END, written_by = excluded.written_by,
            valid_from = CASE WHEN {same} THEN f.valid_from ELSE excluded.valid_from END,
            searchable = excluded.searchable, words = excluded.words RETURNING f.times_confirmed"""

    async def get(self, key: str, ids: Ids) -> Any:
        rows = await self._fetch(self._get, scopes_of(ids), key, datetime.now(UTC))
        return orjson.loads(rows[0][0])

    async def set(self, key: str, value: str, whose: Whose) -> int:
        encoded, text = orjson.dumps(value).decode(), searchable(key, value)
        kinds = new_id(), whose.scope, whose.id, key, encoded, "world_knowledge", owner_of(whose)
        values = *kinds, whose.word, text, datetime.now(UTC), words_of(whose, text)
        rows = await self._fetch(self._set, *values)
        return int(rows[0][0])


class BareAsyncpgLongTerm(_BarePostgreSQL):
    def __init__(self, pool: Any, schema: str) -> None:
        super().__init__(schema)
        self._pool = pool

    @classmethod
    async def open(cls, url: str, schema: str) -> BareAsyncpgLongTerm:
        return cls(await asyncpg.create_pool(url, min_size=10, max_size=10), schema)

    async def _fetch(self, sql: str, *values: Any) -> Sequence[Any]:
        rows: list[Any] = await self._pool.fetch(sql, *values)
        return rows

    async def close(self) -> None:
        await self._pool.close()


class BarePsycopgLongTerm(_BarePostgreSQL):
    def __init__(self, url: str, schema: str) -> None:
        super().__init__(schema)
        options = {"autocommit": True, "cursor_factory": psycopg.RawCursor}
        self._pool = ConnectionPool(url, min_size=10, max_size=10, kwargs=options, open=True)

    async def _fetch(self, sql: Any, *values: Any) -> Sequence[Any]:
        with self._pool.connection() as connection:
            return connection.execute(sql, values).fetchall()

    async def close(self) -> None:
        self._pool.close()
