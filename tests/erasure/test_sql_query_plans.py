"""Looking for tombstones is one look at an index, however many there are."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from firefly_memory import PostgreSQLStore, SQLiteStore
from firefly_memory.tombstones.log import KEY
from firefly_memory.tombstones.sql.statements import TombstoneStatements
from tests.support.sql_statements import on_postgresql, on_sqlite

SCHEMA = "tombstone_plans"
ROWS = 20_000
MOMENT = "2024-06-01T00:00:00.000000+00:00"

ASKED: dict[str, dict[str, Any]] = {
    "read_key": {},
    "among": {"tombstones": ["hash 7", "hash 8"]},
    "refusing": {"tombstones": [KEY, "hash 7", "hash 8"]},
    "remove": {"owner": "owner 7"},
}


@pytest.fixture(scope="module")
def tables(servers_of_the_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    path = tmp_path_factory.mktemp("plans") / "memory.db"
    url = servers_of_the_session["postgresql"]()
    with SQLiteStore(path), PostgreSQLStore(url, schema_name=SCHEMA):
        pass
    rows = [(f"hash {number}", f"owner {number // 2}", MOMENT) for number in range(ROWS)]
    insert = "INSERT INTO {} (id, owner, created_at) VALUES ({})"
    lite = sqlite3.connect(path, isolation_level=None)
    lite.executemany(insert.format("memory_tombstones", "?, ?, ?"), rows)
    lite.execute("ANALYZE")
    with psycopg.connect(url, autocommit=True) as server:
        fill: Any = insert.format(f"{SCHEMA}.memory_tombstones", "%s, %s, %s")
        server.cursor().executemany(fill, rows)
        server.execute(f"VACUUM ANALYZE {SCHEMA}.memory_tombstones".encode())
        yield {"sqlite": lite, "postgresql": server}
        server.execute(f"DROP SCHEMA {SCHEMA} CASCADE".encode())
    lite.close()


@pytest.mark.parametrize("statement", ASKED)
def test_postgresql_finds_tombstones_by_index(statement: str, tables: dict[str, Any]) -> None:
    statements = on_postgresql(TombstoneStatements, SCHEMA)
    prepared = getattr(statements, statement)
    asked = _asked(statement, statements)
    explained = tables["postgresql"].execute(f"EXPLAIN (FORMAT JSON) {prepared.sql}", prepared.parameters(asked))
    plan = json.dumps(explained.fetchone()[0])
    assert "Seq Scan" not in plan
    assert ("idx_tombstones_owner" if statement == "remove" else "memory_tombstones_pkey") in plan


@pytest.mark.parametrize("statement", ASKED)
def test_sqlite_finds_tombstones_by_index(statement: str, tables: dict[str, Any]) -> None:
    statements = on_sqlite(TombstoneStatements)
    prepared = getattr(statements, statement)
    parameters = prepared.parameters(_asked(statement, statements))
    rows = tables["sqlite"].execute(f"EXPLAIN QUERY PLAN {prepared.sql}", parameters).fetchall()
    plan = "\n".join(row[3] for row in rows)
    assert "SCAN memory" not in plan
    assert "idx_tombstones_owner" in plan if statement == "remove" else "sqlite_autoindex_memory_tombstones_1" in plan


def _asked(statement: str, statements: TombstoneStatements) -> dict[str, Any]:
    asked = ASKED[statement]
    return {
        name: statements.dialect.texts(value) if isinstance(value, list) else value for name, value in asked.items()
    }
