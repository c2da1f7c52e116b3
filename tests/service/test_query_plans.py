"""R11: each page is one range of an index, however large the tables are: shown by the planners."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pymongo
import pytest

from firefly_memory import MemoryEntry, MongoDBStore, PostgreSQLStore, SQLiteStore, service
from firefly_memory.agent_history.sql.looking import LookingStatements as HistoryStatements
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.entries.looking import Range
from firefly_memory.entries.mongodb import documents
from firefly_memory.entries.mongodb.looking import across
from firefly_memory.entries.record import Position
from firefly_memory.entries.sql.looking import LookingStatements as EntryStatements
from tests.support.backends import Place
from tests.support.sql_statements import on_postgresql, on_sqlite

NAMESPACES, ENTRIES = 400, 50
NOW = "2024-06-01T00:00:00.000000+00:00"
LAST = "\U0010ffff"

# What each statement is asked with, the index that has to serve it, and the fields that bound the range on SQLite.
ASKED: dict[str, tuple[type[FacetStatements], dict[str, Any], str, str]] = {
    "first_across": (
        EntryStatements,
        {"first": "n", "beyond": LAST},
        "idx_namespace_order",
        "namespace>? AND namespace<?",
    ),
    "next_across": (
        EntryStatements,
        {"after_namespace": "n 200", "beyond": LAST, "created_at": NOW, "entry_id": "x"},
        "idx_namespace_order",
        "(namespace,created_at,entry_id)>(?,?,?) AND namespace<?",
    ),
    "first_of_key": (
        EntryStatements,
        {"namespace": "n 200", "key": "same"},
        "idx_namespace_key_order",
        "namespace=? AND key=?",
    ),
    "next_of_key": (
        EntryStatements,
        {"namespace": "n 200", "key": "same", "created_at": NOW, "entry_id": "x"},
        "idx_namespace_key_order",
        "namespace=? AND key=? AND (created_at,entry_id)>(?,?)",
    ),
    "one": (EntryStatements, {"namespace": "n 200", "entry_id": "x"}, "memory_entries_pkey", "entry_id=?"),
    "first_by_id": (HistoryStatements, {}, "memory_agent_history_pkey", ""),
    "next_by_id": (HistoryStatements, {"after": "c 200"}, "memory_agent_history_pkey", "conversation_id>?"),
}

_HISTORY = """INSERT INTO {schema}memory_agent_history
    (conversation_id, revision, branches, usage, updated_at, format_version)
    SELECT 'c ' || entry_id, 'r', '[]', '{{}}', created_at, 1 FROM {schema}memory_entries"""


@pytest.fixture(scope="module")
def tables(servers_of_the_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Many namespaces, in each of which some entries share a key."""
    path = tmp_path_factory.mktemp("plans") / "memory.db"
    url = servers_of_the_session["postgresql"]()
    with SQLiteStore(path) as sqlite, PostgreSQLStore(url, schema_name="looking_plans") as postgresql:
        for number in range(NAMESPACES):
            entries = [
                MemoryEntry(entry_id=f"{number}/{each}", key="same" if each % 2 else f"{each}")
                for each in range(ENTRIES)
            ]
            for store in (sqlite, postgresql):
                store.save_many(f"n {number}", entries)
    connection = sqlite3.connect(path, isolation_level=None)
    with psycopg.connect(url, autocommit=True) as server:
        for run, schema in ((connection.execute, ""), (server.execute, "looking_plans.")):
            sql: Any = _HISTORY.format(schema=schema)
            run(sql)
        connection.execute("ANALYZE")
        server.execute("VACUUM ANALYZE looking_plans.memory_entries")
        server.execute("VACUUM ANALYZE looking_plans.memory_agent_history")
        yield {"sqlite": connection, "postgresql": server}
        server.execute("DROP SCHEMA looking_plans CASCADE")
    connection.close()


@pytest.mark.parametrize("statement", ASKED)
def test_postgresql_reads_one_range(statement: str, tables: dict[str, Any]) -> None:
    kind, asked, index, _ = ASKED[statement]
    prepared = getattr(on_postgresql(kind, "looking_plans"), statement)
    values = {"now": NOW, "limit": 10, **asked}
    sql = f"EXPLAIN (ANALYZE, FORMAT JSON) {prepared.sql}"
    plan = tables["postgresql"].execute(sql, prepared.parameters(values)).fetchone()[0][0]["Plan"]
    text = json.dumps(plan)
    assert index in text
    assert text.count('"Index Scan"') == 1
    assert "Bitmap" not in text
    assert '"Sort"' not in text
    while "Plans" in plan:
        (plan,) = plan["Plans"]
    assert plan["Actual Rows"] <= 10
    assert plan.get("Rows Removed by Filter", 0) == 0, "it reads no more than it returns"


@pytest.mark.parametrize("statement", ASKED)
def test_sqlite_reads_one_range(statement: str, tables: dict[str, Any]) -> None:
    kind, asked, index, bounds = ASKED[statement]
    prepared = getattr(on_sqlite(kind), statement)
    values = {"now": NOW, "limit": 10, **asked}
    rows = tables["sqlite"].execute(f"EXPLAIN QUERY PLAN {prepared.sql}", prepared.parameters(values)).fetchall()
    (plan,) = [row[3] for row in rows]
    assert (
        index.replace("memory_entries_pkey", "autoindex_memory_entries_1").replace(
            "memory_agent_history_pkey", "autoindex_memory_agent_history_1"
        )
        in plan
    )
    assert bounds in plan


def test_mongodb_reads_one_range(place: Place) -> None:
    now = datetime.now(UTC)
    with (
        MongoDBStore(place.mongodb(), database="looking_plans") as store,
        pymongo.MongoClient[dict[str, Any]](place.mongodb()) as client,
    ):
        for number in range(40):
            store.save_many(f"n {number}", [MemoryEntry() for _ in range(50)])
        for names, after in (
            (Range("", "working:"), None),
            (Range("", "working:"), ("n 20", Position(now, "x"))),
            (Range("n 5", None), ("n 6", Position(now, "x"))),
        ):
            wanted, first, beyond = across(names, after, now)
            cursor = client.looking_plans.entries.find(wanted).hint(documents.IN_ORDER).min(first)
            cursor = cursor if beyond is None else cursor.max(beyond)
            explained = cursor.sort(documents.IN_ORDER).limit(10).explain()
            plan = json.dumps(explained["queryPlanner"]["winningPlan"], default=str)
            assert plan.count('"IXSCAN"') == 1
            assert '"SORT"' not in plan
            assert explained["executionStats"]["totalKeysExamined"] <= 12
            assert explained["executionStats"]["nReturned"] == 10
        assert service.count(store, "entries").rows == 2_000
        client.drop_database("looking_plans")
