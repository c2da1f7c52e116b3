"""The bare drivers, doing an agent's turn by hand: read the newest messages within a budget, append one turn.

They have our tables, or documents as simple as can be, with indexes as good as ours and our durability. A turn gets its
number and the sum of the tokens before it in the best safe way each of them has. They do not count tokens.
"""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
from bson.codec_options import CodecOptions
from psycopg_pool import ConnectionPool
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pymongo import DESCENDING, AsyncMongoClient, MongoClient, WriteConcern
from pymongo.errors import DuplicateKeyError

from benchmarks.bare import new_id
from benchmarks.conversations import BUDGET, TOKENS, bare_document
from benchmarks.one_turn import ANSWER, MESSAGES, PROMPT
from benchmarks.stores import BARE


class BareTurns(ABC):
    """What to compare with, in one mode; blocking ones are coroutines that never suspend."""

    @abstractmethod
    async def history(self, conversation_id: str) -> list[ModelMessage]: ...

    @abstractmethod
    async def add(self, conversation_id: str) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...


def _decoded(rows: Iterable[Any]) -> list[ModelMessage]:
    return [message for row in rows for message in ModelMessagesTypeAdapter.validate_json(row[0])]


def _encoded() -> str:
    return ModelMessagesTypeAdapter.dump_json(MESSAGES).decode()


# SQL. Parameters are written as SQLite has them, and then as each driver wants them.

_WINDOW = """SELECT t.messages FROM {schema}memory_conversations c JOIN {schema}memory_turns t
    ON t.conversation_id = c.conversation_id AND t.tokens_before >= c.tokens - :budget AND t.tokens_before < c.tokens
    WHERE c.conversation_id = :conversation_id ORDER BY t.tokens_before"""
_COUNT = """INSERT INTO {schema}memory_conversations AS c (conversation_id, turns, tokens, created_at, updated_at)
    VALUES (:conversation_id, 1, :size, :now, :now) ON CONFLICT (conversation_id) DO UPDATE
    SET turns = c.turns + 1, tokens = c.tokens + excluded.tokens, updated_at = excluded.updated_at
    RETURNING turns, tokens"""
_INTO_TURNS = """INSERT INTO {schema}memory_turns (conversation_id, turn_id, tokens, tokens_before, user_prompt,
    assistant_response, messages, messages_format, append_id, created_at)"""
_INSERT = f"""{_INTO_TURNS} VALUES (:conversation_id, :turn_id, :size, :before, :prompt, :answer, :messages,
    'pydantic-ai', :append_id, :now)"""
_APPEND = f"""WITH head AS ({_COUNT}) {_INTO_TURNS} SELECT :conversation_id, head.turns - 1, :size,
    head.tokens - :size, :prompt, :answer, :messages, 'pydantic-ai', :append_id, :now FROM head"""


def _window_values(conversation_id: str) -> dict[str, Any]:
    return {"budget": BUDGET, "conversation_id": conversation_id}


def _turn_values(conversation_id: str, now: Any) -> dict[str, Any]:
    return {
        "conversation_id": conversation_id,
        "size": TOKENS,
        "now": now,
        "prompt": PROMPT,
        "answer": ANSWER,
        "messages": _encoded(),
        "append_id": new_id(),
    }


def _spelled(sql: str, parameters: dict[str, str], schema: str = "") -> str:
    for name, spelling in parameters.items():
        sql = sql.replace(f":{name}", spelling)
    return sql.replace("{schema}", schema)


_SQLITE_WINDOW, _SQLITE_COUNT, _SQLITE_INSERT = (_spelled(sql, {}) for sql in (_WINDOW, _COUNT, _INSERT))


def _sqlite_values(conversation_id: str) -> dict[str, Any]:
    return _turn_values(conversation_id, datetime.now(UTC).isoformat())


def _at(head: Any) -> dict[str, Any]:
    turns, tokens = head
    return {"turn_id": turns - 1, "before": tokens - TOKENS}


class BareSQLiteTurns(BareTurns):
    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous=FULL")

    async def history(self, conversation_id: str) -> list[ModelMessage]:
        return _decoded(self._connection.execute(_SQLITE_WINDOW, _window_values(conversation_id)))

    async def add(self, conversation_id: str) -> None:
        values = _sqlite_values(conversation_id)
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            head = self._connection.execute(_SQLITE_COUNT, values).fetchall()[0]
            self._connection.execute(_SQLITE_INSERT, values | _at(head))
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise

    async def close(self) -> None:
        self._connection.close()


class BareAiosqliteTurns(BareTurns):
    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._one_at_a_time = asyncio.Lock()  # a connection has one transaction

    @classmethod
    async def open(cls, path: Path) -> BareAiosqliteTurns:
        connection = await aiosqlite.connect(path, isolation_level=None)
        await connection.execute("PRAGMA synchronous=FULL")
        return cls(connection)

    async def history(self, conversation_id: str) -> list[ModelMessage]:
        return _decoded(await self._connection.execute_fetchall(_SQLITE_WINDOW, _window_values(conversation_id)))

    async def add(self, conversation_id: str) -> None:
        values = _sqlite_values(conversation_id)
        async with self._one_at_a_time:
            await self._connection.execute("BEGIN IMMEDIATE")
            try:
                (head,) = await self._connection.execute_fetchall(_SQLITE_COUNT, values)
                await self._connection.execute(_SQLITE_INSERT, values | _at(head))
                await self._connection.execute("COMMIT")
            except BaseException:
                await self._connection.execute("ROLLBACK")
                raise

    async def close(self) -> None:
        await self._connection.close()


_WINDOW_NAMES = list(_window_values(""))
_TURN_NAMES = ["conversation_id", "size", "now", "prompt", "answer", "messages", "append_id"]


def _for_asyncpg(sql: str, names: list[str]) -> str:
    return _spelled(sql, {name: f"${number}" for number, name in enumerate(names, 1)}, f"{BARE}.")


def _for_psycopg(sql: str, names: list[str]) -> Any:
    return _spelled(sql, {name: f"%({name})s" for name in names}, f"{BARE}.")


class BareAsyncpgTurns(BareTurns):
    _window = _for_asyncpg(_WINDOW, _WINDOW_NAMES)
    _append = _for_asyncpg(_APPEND, _TURN_NAMES)

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, url: str) -> BareAsyncpgTurns:
        return cls(await asyncpg.create_pool(url, min_size=10, max_size=10))

    async def history(self, conversation_id: str) -> list[ModelMessage]:
        return _decoded(await self._pool.fetch(self._window, *_window_values(conversation_id).values()))

    async def add(self, conversation_id: str) -> None:
        await self._pool.execute(self._append, *_turn_values(conversation_id, datetime.now(UTC)).values())

    async def close(self) -> None:
        await self._pool.close()


class BarePsycopgTurns(BareTurns):
    _window = _for_psycopg(_WINDOW, _WINDOW_NAMES)
    _append = _for_psycopg(_APPEND, _TURN_NAMES)

    def __init__(self, url: str) -> None:
        self._pool = ConnectionPool(url, min_size=10, max_size=10, kwargs={"autocommit": True}, open=True)

    async def history(self, conversation_id: str) -> list[ModelMessage]:
        with self._pool.connection() as connection:
            return _decoded(connection.execute(self._window, _window_values(conversation_id)).fetchall())

    async def add(self, conversation_id: str) -> None:
        with self._pool.connection() as connection:
            connection.execute(self._append, _turn_values(conversation_id, datetime.now(UTC)))

    async def close(self) -> None:
        self._pool.close()


# MongoDB

_OPTIONS: dict[str, Any] = {
    "codec_options": CodecOptions(tz_aware=True, tzinfo=UTC),
    "write_concern": WriteConcern("majority", j=True),
}
_PAGE = 32
_PLACE = {"_id": 0, "turn_id": 1, "tokens_before": 1, "tokens": 1}


class BareMongoTurns(BareTurns):
    """Without a transaction: the unique index on its number lets one of several writers have it.

    Whoever has just read the window knows where the next turn goes.
    """

    def __init__(self, client: AsyncMongoClient[Any] | MongoClient[Any]) -> None:
        self._client = client
        self._turns: Any = client.get_database(BARE).get_collection("turns", **_OPTIONS)
        self._ends: dict[str, tuple[int, int]] = {}

    async def history(self, conversation_id: str) -> list[ModelMessage]:
        """Newest first, a page at a time: one query, where asking for the sum of the tokens first would be two."""
        found: list[dict[str, Any]] = []
        room = BUDGET
        while True:
            older = {"turn_id": {"$lt": found[-1]["turn_id"]}} if found else {}
            cursor = self._turns.find({"conversation_id": conversation_id, **older}, _PLACE | {"messages": 1})
            page = await _settled(cursor.sort("turn_id", DESCENDING).limit(_PAGE).to_list(None))
            if page and not found:
                self._ends[conversation_id] = _behind(page[0])
            for turn in page:
                room -= turn["tokens"]
                if room >= 0:
                    found.append(turn)
            if room <= 0 or len(page) < _PAGE:
                return _decoded((turn["messages"],) for turn in reversed(found))

    async def add(self, conversation_id: str) -> None:
        end = self._ends.pop(conversation_id, None)
        messages = _encoded()
        while True:
            end = end or await self._end(conversation_id)
            try:
                await _settled(self._turns.insert_one(bare_document(conversation_id, *end, messages)))
            except DuplicateKeyError:
                end = None
            else:
                return

    async def _end(self, conversation_id: str) -> tuple[int, int]:
        newest = [("turn_id", DESCENDING)]
        return _behind(await _settled(self._turns.find_one({"conversation_id": conversation_id}, _PLACE, sort=newest)))

    async def close(self) -> None:
        await _settled(self._client.close())


def _behind(turn: dict[str, int]) -> tuple[int, int]:
    """The number of the next turn, and the tokens before it."""
    return turn["turn_id"] + 1, turn["tokens_before"] + turn["tokens"]


async def _settled(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
