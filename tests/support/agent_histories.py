"""Conversation stores of pydantic-ai on every backend, for the tests, and a look at what is in their tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

import psycopg
from motor.motor_asyncio import AsyncIOMotorClient
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pymongo import MongoClient
from sqlalchemy import select
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.agent_history.mongodb.documents import ENTRIES
from firefly_memory.agent_history.sql.statements import HistoryStatements
from firefly_memory.agents import MongoConversationStore, SQLConversationStore
from firefly_memory.databases.sql.operation import reads
from firefly_memory.databases.sql.session import Session
from firefly_memory.identifiers import stored_text
from tests.support.backends import Place
from tests.support.spare_places import lent_database, lent_schema

KINDS = ["sqlite", "sqlite-aiosqlite", "postgresql-asyncpg", "postgresql-psycopg", "mongodb", "mongodb-motor"]
SHARED = ["sqlite", "postgresql-asyncpg", "mongodb"]

Stored = SQLConversationStore | MongoConversationStore
Kept = dict[str, tuple[str | None, int]]


@contextmanager
def somewhere(kind: str, place: Place) -> Iterator[str]:
    """Where a store of this kind finds nothing but its own: a file, or a URL and a name after ``#``."""
    if kind.startswith("sqlite"):
        yield f"{place.directory}/history_{uuid4().hex[:12]}.db"
    elif kind.startswith("postgresql"):
        with lent_schema(place.postgresql()) as name:
            yield f"{place.postgresql()}#{name}"
    else:
        with lent_database(place.mongodb()) as name:
            yield f"{place.mongodb()}#{name}"


@contextmanager
def somewhere_new(kind: str, place: Place) -> Iterator[str]:
    """The same, where nobody has counted rows for a planner."""
    name = f"history_{uuid4().hex[:12]}"
    if kind.startswith("sqlite"):
        yield f"{place.directory}/{name}.db"
    elif kind.startswith("postgresql"):
        yield f"{place.postgresql()}#{name}"
        with psycopg.connect(place.postgresql(), autocommit=True) as server:
            server.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
    else:
        yield f"{place.mongodb()}#{name}"
        with MongoClient[dict[str, Any]](place.mongodb()) as client:
            client.drop_database(name)


@asynccontextmanager
async def opened(kind: str, where: str) -> AsyncIterator[Stored]:
    url, _, name = where.partition("#")
    match kind:
        case "sqlite":
            async with SQLiteStore(url) as store:
                yield SQLConversationStore(store)
        case "postgresql-asyncpg":
            async with PostgreSQLStore(url, schema_name=name, pool_min_size=0) as server:
                yield SQLConversationStore(server)
        case "mongodb":
            async with MongoDBStore(url, database=name) as documents:
                yield MongoConversationStore(documents)
        case "mongodb-motor":
            client: Any = AsyncIOMotorClient(url)
            async with MongoDBStore(client=client, database=name) as documents:
                yield MongoConversationStore(documents)
            client.close()
        case "sqlite-aiosqlite":
            engine = create_async_engine(f"sqlite+aiosqlite:///{url}")
            async with SQLiteStore(engine=engine) as store:
                yield SQLConversationStore(store)
            await engine.dispose()
        case _:  # with psycopg, and whatever isolation level comes after it
            level = kind.removeprefix("postgresql-psycopg").strip("-").upper()
            options: dict[str, Any] = {"isolation_level": level} if level else {}
            engine = create_async_engine(re.sub("^postgresql:", "postgresql+psycopg:", url), **options)
            async with PostgreSQLStore(engine=engine, schema_name=name) as server:
                yield SQLConversationStore(server)
            await engine.dispose()


async def kept(conversations: Stored) -> Kept:
    """Every entry there is, with its parent and its holders, which are counted as well."""
    if isinstance(conversations, SQLConversationStore):
        rows = await conversations.store.database.suspending.run(_every_entry)
    else:
        connection = conversations.store.database.suspending()
        found = await connection.all_of(connection[ENTRIES].find({}, {"message": 0}))
        rows = [(each["_id"], each["parent_id"], each["holders"]) for each in found]
    entries: Kept = {entry_id: (parent_id, holders) for entry_id, parent_id, holders in rows}
    holders = Counter(parent_id for parent_id, _ in entries.values())
    for record in await conversations.read_records():
        holders.update({stored_text(end) for end in (record.head_id, *record.branches) if end is not None})
    assert {entry_id: held for entry_id, (_, held) in entries.items()} == {each: holders[each] for each in entries}
    return entries


@reads
def _every_entry(session: Session) -> Any:
    statements = session.statements(HistoryStatements)
    e = statements.entries.c
    return session.fetch(statements.compiled(select(e.entry_id, e.parent_id, e.holders)), {})


def message(number: object) -> ModelMessage:
    text = str(number)
    return ModelResponse([TextPart(text)]) if text.endswith("!") else ModelRequest([UserPromptPart(text)])


def messages(count: int, first: int = 0) -> list[ModelMessage]:
    return [message(number) for number in range(first, first + count)]


def texts(conversation: Conversation | None) -> list[str]:
    assert conversation is not None
    return [str(each.parts[0].content) for each in conversation.messages]  # type: ignore[union-attr]
