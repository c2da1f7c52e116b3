"""R11 for conversations: query plans show that a window costs only its own turns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from firefly_memory import ConversationMemory, PostgreSQLStore, SQLiteStore
from firefly_memory.conversations.sql.flushing import FlushStatements
from firefly_memory.conversations.sql.statements import ConversationStatements
from tests.support.sql_statements import on_postgresql, on_sqlite

TURNS = 20_000
NOW = "2024-06-01T00:00:00.000000+00:00"

# What each statement is asked with, and the index that has to serve it.
ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "window": ({"budget": 100}, "idx_turns_tokens"),
    "head": ({}, "memory_conversations_pkey"),
    "some_turns": ({"after": 500, "limit": 10}, "memory_turns_pkey"),
    "appended": ({"append_id": "x"}, "memory_turns_pkey"),
    "find": ({"idempotency_key": "key 7"}, "idx_turns_idempotency"),
}

# The same for those of flushes.
FLUSHES: dict[str, tuple[dict[str, Any], str]] = {
    "find": ({"flush_id": "flush 7"}, "memory_flushes_pkey"),
    "drop": ({"dropped_turns": 10}, "memory_turns_pkey"),
    "flush": (
        {"flush_id": "x", "evicted_turns": 3, "evicted_tokens": 30, "summary": "s", "dropped_turns": 0, "marks": None},
        "memory_conversations_pkey",
    ),
    "restore": (
        {"newest": "x", "flush_id": None, "evicted_turns": 3, "evicted_tokens": 30, "summary": None},
        "memory_conversations_pkey",
    ),
}

_FILL = """INSERT INTO {schema}memory_turns (conversation_id, turn_id, tokens, tokens_before, user_prompt,
    assistant_response, idempotency_key, append_id, created_at)
    SELECT 'large', number, 10, number * 10, 'prompt', 'answer', 'key ' || number, 'append ' || number, '{now}'
    FROM {numbers}"""
_HEADS = """INSERT INTO {schema}memory_conversations (conversation_id, turns, tokens, created_at, updated_at)
    SELECT CASE number WHEN 0 THEN 'large' ELSE 'small ' || number END, {turns}, {turns} * 10, '{now}', '{now}'
    FROM {numbers}"""
_FLUSHES = """INSERT INTO {schema}memory_flushes (conversation_id, flush_id, strategy, turns, turns_before, tokens_before,
    created_at) SELECT 'large', 'flush ' || number, 's', number, 0, 0, '{now}' FROM {numbers}"""
_SQLITE = "(WITH RECURSIVE n(number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM n WHERE number < {n}) SELECT number FROM n)"


@pytest.fixture(scope="module")
def tables(servers_of_the_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """One conversation of many turns among many conversations."""
    path = tmp_path_factory.mktemp("plans") / "memory.db"
    url = servers_of_the_session["postgresql"]()
    with SQLiteStore(path), PostgreSQLStore(url, schema_name="conversation_plans"):
        pass
    connection = sqlite3.connect(path, isolation_level=None)
    words = {"turns": TURNS, "now": NOW}
    with psycopg.connect(url, autocommit=True) as server:
        for run, schema, numbers in (
            (connection.execute, "", _SQLITE.format(n=TURNS - 1)),
            (server.execute, "conversation_plans.", f"generate_series(0, {TURNS - 1}) AS n(number)"),
        ):
            for statement in (_FILL, _HEADS, _FLUSHES):
                sql: Any = statement.format(schema=schema, numbers=numbers, **words)
                run(sql)
        connection.execute("ANALYZE")
        server.execute("VACUUM ANALYZE conversation_plans.memory_turns")
        server.execute("VACUUM ANALYZE conversation_plans.memory_conversations")
        server.execute("VACUUM ANALYZE conversation_plans.memory_flushes")
        yield {"sqlite": connection, "postgresql": server, "path": path, "url": url}
        server.execute("DROP SCHEMA conversation_plans CASCADE")
    connection.close()


@pytest.mark.parametrize("statement", ASKED)
def test_postgresql_reads_by_index(statement: str, tables: dict[str, Any]) -> None:
    statements = on_postgresql(ConversationStatements, "conversation_plans")
    asked, index = ASKED[statement]
    prepared = getattr(statements, statement)
    parameters = prepared.parameters({"conversation_id": "large", **asked})
    explained = tables["postgresql"].execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {prepared.sql}", parameters)
    plan = explained.fetchone()[0]
    text = json.dumps(plan)
    assert index in text
    assert "Seq Scan" not in text
    if statement != "appended":
        assert _rows_read(plan[0]["Plan"]) <= 12, "no more than is returned"


def _rows_read(node: dict[str, Any]) -> float:
    here = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return float(max([here, *map(_rows_read, node.get("Plans", []))]))


@pytest.mark.parametrize("statement", ASKED)
def test_sqlite_reads_by_index(statement: str, tables: dict[str, Any]) -> None:
    statements = on_sqlite(ConversationStatements)
    asked, index = ASKED[statement]
    prepared = getattr(statements, statement)
    parameters = prepared.parameters({"conversation_id": "large", **asked})
    rows = tables["sqlite"].execute(f"EXPLAIN QUERY PLAN {prepared.sql}", parameters).fetchall()
    plan = "\n".join(row[3] for row in rows)
    assert index.replace("_pkey", "_1").replace("memory_", "sqlite_autoindex_memory_") in plan
    assert "SCAN memory" not in plan
    assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("statement", FLUSHES)
def test_flushes_read_and_change_by_index(statement: str, tables: dict[str, Any]) -> None:
    asked, index = FLUSHES[statement]
    prepared = getattr(on_postgresql(FlushStatements, "conversation_plans"), statement)
    parameters = prepared.parameters({"conversation_id": "large", **asked})
    with tables["postgresql"].transaction(force_rollback=True):
        explained = tables["postgresql"].execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {prepared.sql}", parameters)
        plan = explained.fetchone()[0]
    assert index in json.dumps(plan)
    assert "Seq Scan" not in json.dumps(plan)
    assert _rows_read(plan[0]["Plan"]) <= 12
    prepared = getattr(on_sqlite(FlushStatements), statement)
    parameters = prepared.parameters({"conversation_id": "large", **asked})
    rows = tables["sqlite"].execute(f"EXPLAIN QUERY PLAN {prepared.sql}", parameters).fetchall()
    assert index.replace("_pkey", "_1").replace("memory_", "sqlite_autoindex_memory_") in "\n".join(
        row[3] for row in rows
    )


def test_a_fork_reads_only_the_turns_that_it_copies(tables: dict[str, Any]) -> None:
    asked = {
        "conversation_id": "large",
        "fork_id": "fork",
        "limit": 10,
        "now": NOW,
        "key_made_at": NOW,
        "tombstone": "x",
    }
    statements = on_postgresql(ConversationStatements, "conversation_plans")
    head, turns = statements.fork_head, statements.fork_turns
    with tables["postgresql"].transaction(force_rollback=True):
        read = []
        for each in (head, turns):
            explained = tables["postgresql"].execute(
                f"EXPLAIN (ANALYZE, FORMAT JSON) {each.sql}", each.parameters(asked)
            )
            (plan,) = explained.fetchone()
            assert "Seq Scan" not in json.dumps(plan)
            read.append(_rows_read(plan[0]["Plan"]))
        assert read[0] <= 2
        assert read[1] <= 12
    lite = on_sqlite(ConversationStatements)
    for each in (lite.fork_head, lite.fork_turns):
        rows = tables["sqlite"].execute(f"EXPLAIN QUERY PLAN {each.sql}", each.parameters(asked)).fetchall()
        assert "SCAN memory" not in "\n".join(row[3] for row in rows)


def test_a_window_costs_the_same_in_a_long_conversation(tables: dict[str, Any]) -> None:
    for store in (
        SQLiteStore(tables["path"]),
        PostgreSQLStore(tables["url"], schema_name="conversation_plans"),
    ):
        with store:
            memory = ConversationMemory(store=store)
            window = memory.get_window("large", 50)
            assert window.turns == tuple(range(TURNS - 5, TURNS))
            assert memory.add_turn("large", "p", "a", expected_turns=TURNS).turn_id == TURNS
