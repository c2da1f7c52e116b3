"""Query plans show that reading and deleting a conversation cost only the rows that they touch."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from bson import ObjectId
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord
from pymongo import AsyncMongoClient, MongoClient, monitoring

from firefly_memory import MongoDBStore
from firefly_memory.agent_history.sql.statements import HistoryStatements
from firefly_memory.agents import MongoConversationStore
from tests.support.agent_histories import SHARED, Stored, kept, message, opened, somewhere_new, texts
from tests.support.backends import Place
from tests.support.sql_statements import on_postgresql, on_sqlite

pytestmark = pytest.mark.thorough

LONG = 100_000
WINDOW = 50
NOW = "2024-06-01T00:00:00.000000+00:00"

MESSAGE = '{"parts": [{"content": "prompt", "part_kind": "user-prompt"}], "kind": "request"}'
ENTRIES = """INSERT INTO {schema}memory_agent_history_entries (entry_id, parent_id, kind, message, holders)
    SELECT 'e' || number, CASE number WHEN 0 THEN NULL ELSE 'e' || (number - 1) END, 'message', '{message}', 1
    FROM {numbers}"""
RECORDS = """INSERT INTO {schema}memory_agent_history
    (conversation_id, revision, head_id, scope, branches, usage, updated_at, format_version)
    SELECT 'c' || number, 'r', CASE number WHEN 0 THEN 'e{last}' END, 'scope ' || (number % 200), '[]', '{{}}', '{now}', 1
    FROM {numbers}"""
SQLITE = "(WITH RECURSIVE n(number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM n WHERE number < {n}) SELECT number FROM n)"
POSTGRESQL = "generate_series(0, {n}) AS n(number)"

# What each statement is asked with, and the index that has to serve it.
ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "history": ({"head_id": f"e{LONG - 1}", "limit": WINDOW}, "memory_agent_history_entries_pkey"),
    "released": ({"steps": 5_000}, "idx_agent_history_entries_released"),
    "record": ({"this_id": "c7"}, "memory_agent_history_pkey"),
    "these": ({"entry_ids": ["e7", "e9"]}, "memory_agent_history_entries_pkey"),
    "shared": ({"entry_ids": ["e7", "e99"]}, "memory_agent_history_entries_pkey"),
    "newest": ({"limit": WINDOW}, "idx_agent_history_order"),
    "newest_of_scope": ({"limit": WINDOW, "scope": "scope 3"}, "idx_agent_history_scope_order"),
}


@asynccontextmanager
async def filled(kind: str, where: str) -> AsyncIterator[Stored]:
    """One conversation of many messages, and others."""
    async with opened(kind, where) as conversations:
        url, _, name = where.partition("#")
        if kind == "mongodb":
            _fill_mongodb(url, name)
        elif kind == "sqlite":
            connection = sqlite3.connect(url, isolation_level=None)
            for sql in _filling("", SQLITE):
                connection.execute(sql)
            connection.execute("ANALYZE")
            connection.close()
        else:
            with psycopg.connect(url, autocommit=True) as server:
                for sql in (*_filling(f"{name}.", POSTGRESQL), *_released_fork(f"{name}.")):
                    server.execute(sql.encode())
                server.execute(f"ANALYZE {name}.memory_agent_history, {name}.memory_agent_history_entries".encode())
        yield conversations


def _filling(schema: str, numbers: str) -> list[str]:
    entries = ENTRIES.format(schema=schema, message=MESSAGE, numbers=numbers.format(n=LONG - 1))
    return [entries, RECORDS.format(schema=schema, last=LONG - 1, now=NOW, numbers=numbers.format(n=9_999))]


def _fill_mongodb(url: str, name: str) -> None:
    chain = ObjectId()
    with MongoClient[dict[str, Any]](url) as client:
        client[name].memory_agent_history_entries.insert_many(
            {
                "_id": f"e{number}",
                "parent_id": f"e{number - 1}" if number else None,
                "kind": "message",
                "message": MESSAGE,
                "holders": int(number < LONG - 1),
                "chain": chain,
                "place": number,
            }
            for number in range(LONG)
        )


@pytest.fixture
def postgresql(place: Place) -> Iterator[str]:
    with somewhere_new("postgresql-asyncpg", place) as where:
        yield where


async def test_postgresql_reads_by_index(postgresql: str) -> None:
    url, _, name = postgresql.partition("#")
    said = on_postgresql(HistoryStatements, name)
    async with filled("postgresql-asyncpg", postgresql):
        with psycopg.connect(url, autocommit=True) as server:
            for statement, (asked, index) in ASKED.items():
                prepared = getattr(said, statement)
                values = prepared.parameters(_parameters(said, asked))
                explained = server.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {prepared.sql}", values)
                plan = explained.fetchall()[0][0]
                assert index in json.dumps(plan), statement
                assert "Seq Scan" not in json.dumps(plan), statement
                assert _rows_read(plan[0]["Plan"]) <= (WINDOW if "limit" in asked else 3), statement


def _parameters(statements: HistoryStatements, asked: dict[str, Any]) -> dict[str, Any]:
    return {
        name: statements.dialect.texts(value) if isinstance(value, list) else value for name, value in asked.items()
    }


def _released_fork(schema: str) -> Iterator[str]:
    """Three entries after one that has another after it too; nobody holds the last."""
    yield f"UPDATE {schema}memory_agent_history_entries SET holders = 2 WHERE entry_id = 'e99'"
    for entry_id, parent_id, holders in (("f0", "e99", 1), ("f1", "f0", 1), ("f2", "f1", 0)):
        values = f"'{entry_id}', '{parent_id}', 'message', '{MESSAGE}', {holders}"
        yield f"INSERT INTO {schema}memory_agent_history_entries VALUES ({values})"


def _rows_read(node: dict[str, Any]) -> float:
    here = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return float(max([here, *map(_rows_read, node.get("Plans", []))]))


async def test_sqlite_reads_by_index(place: Place) -> None:
    said = on_sqlite(HistoryStatements)
    with somewhere_new("sqlite", place) as where:
        async with filled("sqlite", where):
            connection = sqlite3.connect(where)
            for statement, (asked, index) in ASKED.items():
                prepared = getattr(said, statement)
                values = prepared.parameters(_parameters(said, asked))
                rows = connection.execute(f"EXPLAIN QUERY PLAN {prepared.sql}", values).fetchall()
                plan = [row[3] for row in rows]
                serving = index.replace("_pkey", "_1").replace("memory_", "sqlite_autoindex_memory_")
                assert any(serving in step for step in plan), plan
                assert not [step for step in plan if step.startswith("SCAN memory") and index not in step], plan
                assert statement == "released" or not [step for step in plan if "TEMP B-TREE" in step], plan
            connection.close()


async def test_mongodb_reads_a_history_with_forks_in_one_command(place: Place) -> None:
    commands = Commands()
    with somewhere_new("mongodb", place) as where:
        url, _, name = where.partition("#")
        client: AsyncMongoClient[Any]
        async with (
            AsyncMongoClient(url, event_listeners=[commands]) as client,
            MongoDBStore(client=client, database=name) as store,
        ):
            conversations = MongoConversationStore(store)
            line: list[ConversationEntry] = []
            for fork, kept_before in enumerate((0, 30, 45, 50, 90)):
                del line[kept_before:]
                new: list[ConversationEntry] = []
                for number in range(50):
                    above = new[-1] if new else line[-1] if line else None
                    large = "x" * 9_000_000 if kept_before + number in (29, 44) else f"{fork}.{number}"
                    new.append(ConversationEntry(parent_id=above.id if above else None, message=message(large)))
                line += new
                record = ConversationRecord(conversation_id=f"fork {fork}", head_id=line[-1].id)
                await conversations.write_record(record, new_entries=new, expected_revision=None)
            ids = [entry.id for entry in line]
            for limit in (None, 1, 2, 49, 50, 51, 91, 95, 140, 1_000):
                commands.seen.clear()
                found = await conversations.read_history(ids[-1], limit=limit)
                assert [entry.id for entry in found] == ids[-(limit or len(ids)) :]
                assert [each for each in commands.seen if each != "getMore"] == ["aggregate"]
            commands.seen.clear()
            await client[name].command("profile", 2)
            assert len(await conversations.read_history(ids[-1], limit=60)) == 60
            with MongoClient[dict[str, Any]](url) as looking:
                # An end of each of the five chains is looked up, and the entries.
                assert _examined(looking[name]) <= 60 + 1 + 2 * 5
            await client[name].command("profile", 0)


async def test_mongodb_reads_a_history_of_many_forks_in_a_few_commands(place: Place) -> None:
    commands = Commands()
    with somewhere_new("mongodb", place) as where:
        url, _, name = where.partition("#")
        client: AsyncMongoClient[Any]
        async with (
            AsyncMongoClient(url, event_listeners=[commands]) as client,
            MongoDBStore(client=client, database=name) as store,
        ):
            conversations = MongoConversationStore(store)
            ids = await _one_fork_after_the_other(conversations, ["short"] * 110)
            for limit, most in ((None, 4), (5, 1), (20, 2), (110, 4)):
                commands.seen.clear()
                found = await conversations.read_history(ids[-1], limit=limit)
                assert [entry.id for entry in found] == ids[-(limit or len(ids)) :]
                assert len([each for each in commands.seen if each == "aggregate"]) == most
            await client[name].command("profile", 2)
            assert len(await conversations.read_history(ids[-1], limit=20)) == 20
            with MongoClient[dict[str, Any]](url) as looking:
                assert _examined(looking[name]) <= 2 * 20 + 2
            await client[name].command("profile", 0)


async def test_mongodb_reads_a_history_whose_forks_are_larger_than_a_stage_of_its_queries_may_be(place: Place) -> None:
    with somewhere_new("mongodb", place) as where:
        async with opened("mongodb", where) as conversations:
            large = "x" * 12_000_000
            await _one_fork_after_the_other(conversations, [f"{number}{large}" for number in range(9)])
            assert [text[0] for text in texts(await conversations.load("fork 8"))] == [*"012345678"]
            fork = await conversations.fork("fork 8", at=8, new_conversation_id="again")
            await conversations.branch("again", at=7, expected_revision=fork.revision)
            assert [text[0] for text in texts(await conversations.load("again", limit=2))] == ["5", "6"]


async def _one_fork_after_the_other(conversations: Stored, prompts: list[str]) -> list[str]:
    """Each message begins a chain of its own; their ids."""
    line: list[ConversationEntry] = []
    for number, prompt in enumerate(prompts):
        line.append(ConversationEntry(parent_id=line[-1].id if line else None, message=message(prompt)))
        record = ConversationRecord(conversation_id=f"fork {number}", head_id=line[-1].id)
        await conversations.write_record(record, new_entries=line[-1:], expected_revision=None)
    return [entry.id for entry in line]


class Commands(monitoring.CommandListener):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.seen.append(event.command_name)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


async def test_mongodb_examines_only_the_documents_it_returns(place: Place) -> None:
    with somewhere_new("mongodb", place) as where:
        url, _, name = where.partition("#")
        async with filled("mongodb", where) as conversations:
            with MongoClient[dict[str, Any]](url) as client:
                database = client[name]
                long = ConversationRecord(conversation_id="long", head_id=f"e{LONG - 1}")
                await conversations.write_record(long, expected_revision=None)
                database.command("profile", 2)
                assert len(await conversations.read_history(f"e{LONG - 1}", limit=WINDOW)) == WINDOW
                assert _examined(database) <= WINDOW + 1
                forked = await _forked(conversations)
                before = _examined(database)
                await conversations.delete("fork")
                assert _examined(database) - before <= 3 * 10
                with pytest.raises(KeyError):
                    await conversations.read_entry(forked)
                # All but the last entry of the long one stays, and is not looked at.
                near = ConversationRecord(conversation_id="near", head_id=f"e{LONG - 2}")
                await conversations.write_record(near, expected_revision=None)
                before = _examined(database)
                await conversations.delete("long")
                assert _examined(database) - before <= 3 * WINDOW
                with pytest.raises(KeyError):
                    await conversations.read_entry(f"e{LONG - 1}")
                assert len(await conversations.read_history(near.head_id, limit=WINDOW)) == WINDOW
                database.command("profile", 0)


def _examined(database: Any) -> int:
    found = list(database.system.profile.find({"ns": {"$ne": f"{database.name}.system.profile"}}))
    assert not [each for each in found if "COLLSCAN" in each.get("planSummary", "")]
    return sum(each.get("docsExamined", 0) for each in found)


async def _forked(conversations: Stored) -> str:
    entries: list[ConversationEntry] = []
    for number in range(3):
        parent_id = entries[-1].id if entries else "e99"
        entries.append(ConversationEntry(parent_id=parent_id, message=message(number)))
    record = ConversationRecord(conversation_id="fork", head_id=entries[-1].id)
    await conversations.write_record(record, new_entries=entries, expected_revision=None)
    return entries[-1].id


@pytest.mark.parametrize("kind", SHARED)
async def test_a_long_conversation_is_read_and_deleted_whole(kind: str, place: Place) -> None:
    count = 12_000  # more than a deletion takes in one go
    with somewhere_new(kind, place) as where:
        async with opened(kind, where) as conversations:
            long = Conversation(conversation_id="long", messages=[message(number) for number in range(count)])
            await conversations.save(long)
            await conversations.fork("long", at=10, new_conversation_id="short")
            assert texts(await conversations.load("long")) == [str(number) for number in range(count)]
            assert texts(await conversations.load("long", limit=2)) == [str(count - 2), str(count - 1)]
            await conversations.delete("long")
            assert len(await kept(conversations)) == 10
            assert texts(await conversations.load("short")) == [str(number) for number in range(10)]
