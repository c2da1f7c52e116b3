"""R11: query plans show that every frequent query uses its index, however large the table is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pymongo
import pytest

from firefly_memory import MemoryEntry, MongoDBStore, PostgreSQLStore, SQLiteStore
from firefly_memory.entries.mongodb import documents
from firefly_memory.entries.record import Position
from firefly_memory.entries.sql.statements import EntryStatements
from tests.support.backends import Place
from tests.support.sql_statements import on_postgresql, on_sqlite

ENTRIES = 20_000
NOW = "2024-06-01T00:00:00.000000+00:00"

# What each statement is asked with, and the index that has to serve it.
ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "load": ({}, "idx_namespace_order"),
    "first_page": ({"limit": 10}, "idx_namespace_order"),
    "next_page": ({"limit": 10, "created_at": NOW, "entry_id": "x"}, "idx_namespace_order"),
    "newest": ({"key": "same"}, "idx_namespace_key_order"),
    "delete": ({"entry_id": "id-5"}, "memory_entries_pkey"),
    "delete_many": ({"entry_ids": ["id-5", "id-6"]}, "memory_entries_pkey"),
    "next_namespaces": ({"prefix": "", "after": "", "rows": 10}, "idx_namespace_order"),
}
EXPIRED_ON_POSTGRESQL: dict[str, tuple[dict[str, Any], str]] = {
    "first_to_stay": ({"limit": 10}, "idx_expires_at"),
    "delete_before": ({"before": NOW}, "idx_expires_at"),
    "some_expired": ({"limit": 10}, "idx_expires_at"),
    "delete_expired": ({"entry_ids": ["id-5", "id-6"]}, "memory_entries_pkey"),
}
EXPIRED_ON_SQLITE: dict[str, tuple[dict[str, Any], str]] = {"purge_some": ({"limit": 10}, "idx_expires_at")}


@pytest.fixture(scope="module")
def tables(servers_of_the_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Tables with many namespaces, one of them large, and one key that a thousand entries share."""
    entries = [
        MemoryEntry(entry_id=f"id-{number}", key="same" if number % 20 == 0 else f"key {number}", content=number)
        for number in range(ENTRIES)
    ]
    path = tmp_path_factory.mktemp("plans") / "memory.db"
    url = servers_of_the_session["postgresql"]()
    with SQLiteStore(path) as sqlite, PostgreSQLStore(url, schema_name="plans") as postgresql:
        for store in (sqlite, postgresql):
            store.save_many("large", entries)
            for number in range(50):
                store.save(f"small {number}", MemoryEntry())
    connection = sqlite3.connect(path)
    connection.execute("ANALYZE")
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("VACUUM ANALYZE plans.memory_entries")
        yield {"sqlite": connection, "postgresql": server}
        server.execute("DROP SCHEMA plans CASCADE")
    connection.close()


@pytest.mark.parametrize("statement", ASKED | EXPIRED_ON_POSTGRESQL)
def test_postgresql_reads_by_index(statement: str, tables: dict[str, Any]) -> None:
    statements = on_postgresql(EntryStatements, "plans")
    asked, index = (ASKED | EXPIRED_ON_POSTGRESQL)[statement]
    values = {"namespace": "large", "now": NOW, **asked}
    prepared = getattr(statements, statement)
    explained = tables["postgresql"].execute(f"EXPLAIN (FORMAT JSON) {prepared.sql}", prepared.parameters(values))
    plan = json.dumps(explained.fetchone()[0])
    if statement == "load":  # the whole namespace is most of this table; by any way, but without reading it twice
        assert plan.count('"Relation Name"') == 1
        return
    assert index in plan
    assert "Seq Scan" not in plan
    assert '"Sort"' not in plan


@pytest.mark.parametrize("statement", ASKED | EXPIRED_ON_SQLITE)
def test_sqlite_reads_by_index(statement: str, tables: dict[str, Any]) -> None:
    statements = on_sqlite(EntryStatements)
    asked, index = (ASKED | EXPIRED_ON_SQLITE)[statement]
    values = {"namespace": "large", "now": NOW, **asked}
    if "entry_ids" in values:
        values["entry_ids"] = statements.dialect.texts(values["entry_ids"])
    prepared = getattr(statements, statement)
    rows = tables["sqlite"].execute(f"EXPLAIN QUERY PLAN {prepared.sql}", prepared.parameters(values)).fetchall()
    plan = "\n".join(row[3] for row in rows)
    if statement == "next_namespaces":
        index = "idx_namespace"
    assert index.replace("memory_entries_pkey", "sqlite_autoindex_memory_entries_1") in plan
    assert "SCAN memory_entries\n" not in f"{plan}\n"
    assert "TEMP B-TREE" not in plan


SEVERAL: dict[str, dict[str, Any]] = {
    "load_several": {"namespaces": ["small 1", "small 2", "unknown"]},
    "clear_between": {"first": "small 1", "beyond": "small 2"},
    "is_used_between": {"first": "small 1", "beyond": "small 2"},
}


@pytest.mark.parametrize("statement", SEVERAL)
def test_several_namespaces_are_found_by_index(statement: str, tables: dict[str, Any]) -> None:
    """They may be sorted: the entries that are returned are all that is read."""
    values = {"now": NOW, **SEVERAL[statement]}
    there: EntryStatements = on_postgresql(EntryStatements, "plans")
    prepared = getattr(there, statement)
    explained = tables["postgresql"].execute(f"EXPLAIN {prepared.sql}", prepared.parameters(values)).fetchall()
    plan = "\n".join(row[0] for row in explained)
    assert "idx_namespace_order" in plan or "idx_namespace_key_order" in plan
    assert "Seq Scan" not in plan
    here: EntryStatements = on_sqlite(EntryStatements)
    values |= {name: here.dialect.texts(value) for name, value in values.items() if isinstance(value, list)}
    prepared = getattr(here, statement)
    rows = tables["sqlite"].execute(f"EXPLAIN QUERY PLAN {prepared.sql}", prepared.parameters(values)).fetchall()
    plan = "\n".join(row[3] for row in rows)
    assert "SEARCH memory_entries USING" in plan
    assert "idx_namespace" in plan


def test_mongodb_reads_by_index(place: Place) -> None:
    now = MemoryEntry().created_at
    with (
        MongoDBStore(place.mongodb(), database="plans") as store,
        pymongo.MongoClient[dict[str, Any]](place.mongodb()) as client,
    ):
        store.save_many("large", [MemoryEntry(key="same" if n % 20 == 0 else f"key {n}") for n in range(2_000)])
        store.save("small", MemoryEntry(expires_at=now))
        entries = client.plans.entries
        live = documents.live(now)
        position = documents.document_id(Position(now, "x"))
        found = {
            "namespace_1__id_1": entries.find({"namespace": "large", **live})
            .sort("_id")
            .hint(documents.IN_ORDER)
            .limit(10),
            "namespace_1__id_1 ": entries.find({"namespace": "large", "_id": {"$gt": position}, **live})
            .sort("_id")
            .hint(documents.IN_ORDER)
            .limit(10),
            "namespace_1_key_1__id_1": entries.find({"namespace": "large", "key": "same", **live})
            .sort("_id", -1)
            .hint(documents.KEY_IN_ORDER)
            .limit(1),
            "namespace_1": entries.find({"namespace": {"$gt": "a"}, **live}, {"namespace": 1})
            .sort("namespace")
            .limit(1),
            "entry_id_1": entries.find({"entry_id": "x", "namespace": "large", **live}),
            "expires_at_1": entries.find(documents.expired(now)),
        }
        for index, cursor in found.items():
            explained = cursor.explain()
            plan = json.dumps(explained["queryPlanner"]["winningPlan"], default=str)
            assert f'"indexName": "{index.strip()}' in plan, index
            assert '"SORT"' not in plan, index
            assert explained["executionStats"]["totalDocsExamined"] <= 10, index
        newest = found["namespace_1_key_1__id_1"].explain()["executionStats"]
        assert newest["totalDocsExamined"] == 1, "the newest of a hundred, and no other"
        store.clear("large")
        store.clear("small")


def test_the_newest_of_many_entries_of_one_key_costs_one_row(tables: dict[str, Any]) -> None:
    statements = on_postgresql(EntryStatements, "plans")
    values = {"namespace": "large", "key": "same", "now": NOW}
    sql = f"EXPLAIN (ANALYZE, FORMAT JSON) {statements.newest.sql}"
    plan = tables["postgresql"].execute(sql, statements.newest.parameters(values)).fetchone()[0][0]["Plan"]
    while "Plans" in plan:
        (plan,) = plan["Plans"]
    assert plan["Actual Rows"] == 1
