"""Query plans show that lists, searches and deletions cost only the rows that they touch."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import sql

from firefly_memory import PostgreSQLStore, SQLiteStore
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.knowledge.log import CHUNKS
from firefly_memory.knowledge.sql.statements import KnowledgeStatements
from firefly_memory.search.sql.statements import IndexStatements, statements_of
from tests.support.sql_statements import on_postgresql, on_sqlite

SCHEMA = "knowledge_plans"
COLLECTIONS = 200
EACH = 200
"""Chunks of each collection: every tenth is somebody's."""

# Texts that both databases read: {words} is how each has an array of words.
CHUNK = """INSERT INTO {schema}memory_chunks
    (id, space, collection, owner, text, created_at, scope, who, group_id, position, searchable, words, newest)
    SELECT 'i' || n, '', 'c' || (n % 200), CASE WHEN n % 10 = 0 THEN 'p' || (n % 50) END, 'text',
      CAST('2024-05-06T00:00:00.' || (100000 + n / 200) || '+00:00' AS {instant}), '_s' || (n % 200), 'Anna', 'g' || (n / 4000), n / 200 % 20,
      'text ' || n, {words}, CAST('2024-05-06T00:00:00.' || (100000 + n / 200) || '+00:00' AS {instant})
    FROM {numbers}"""
VECTORS = """INSERT INTO {schema}memory_chunks_vectors (id, embedder, vector)
    SELECT 'i' || n, 'e', {bits} FROM {numbers} WHERE n % 2 = 0"""
SIGNATURES = """INSERT INTO {schema}memory_chunks_signatures (scope, embedder, id, signature)
    SELECT '_s' || (n % 200), 'e', 'i' || n, {bits} FROM {numbers} WHERE n % 2 = 0"""
ON_SQLITE = {
    "schema": "",
    "instant": "TEXT",
    "words": "'_s' || (n % 200) || ' often w' || (n % 1000) || ' x' || n",
    "bits": "x'00'",
    "numbers": "(WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 39999) SELECT n FROM c)",
}
ON_POSTGRESQL = {
    "schema": f"{SCHEMA}.",
    "instant": "TIMESTAMPTZ",
    "words": "ARRAY['_s' || (n % 200), 'often', 'w' || (n % 1000), 'x' || n]",
    "bits": r"'\x00'",
    "numbers": "generate_series(0, 39999) AS numbers(n)",
}


class Asked(NamedTuple):
    """A statement, what it is asked, and how it has to find its rows."""

    values: Mapping[str, Any]
    indexes: tuple[str, ...]
    rows: int
    """The most that any step reads."""
    of_index: bool = False
    sorts: bool = False
    only_on_postgresql: tuple[str, ...] = ()
    """Further indexes."""


IN_COLLECTION = {"space": "", "collection": "c7"}
SCOPES = {"scopes": ["_s7", "_s8"]}
IDS = {"ids": ["i7", "i8", "i9", "none"]}
TWO = 2 * EACH

ASKED: dict[str, Asked] = {
    "these": Asked(IDS, ("idx_chunks_id",), 4),
    "locked": Asked(IDS, ("idx_chunks_id",), 4, of_index=True, sorts=True),
    "page": Asked({"after": "i7", "limit": 50}, ("idx_chunks_id",), 50),
    "oldest": Asked({**IN_COLLECTION, "limit": 50}, ("idx_chunks_collection",), 50),
    "oldest_after": Asked(
        {**IN_COLLECTION, "limit": 50, "created_at": "2024-05-06T00:00:00.100120+00:00", "after": "i7"},
        ("idx_chunks_collection",), 60,
    ),
    "of_owner": Asked({"owner": "p10", "limit": 50, "after": "i7"}, ("idx_chunks_owner",), 50),
    "next_collection": Asked({"space": "", "after": "c150", "limit": 1}, ("idx_chunks_collection",), 1),
    "count_of_collection": Asked(IN_COLLECTION, ("idx_chunks_collection",), EACH),
    "some_of_source": Asked({**IN_COLLECTION, "source": '"s"', "limit": 50}, ("idx_chunks_collection",), EACH),
    "some_of_collection": Asked({**IN_COLLECTION, "limit": 50}, ("idx_chunks_collection",), 50),
    "without_vector": Asked({"embedder": "e", "after": "i7", "limit": 50}, ("idx_chunks_id", "vectors"), 200),
    "lacking": Asked({**IDS, "embedder": "e"}, ("idx_chunks_id", "vectors"), 4),
    "counts": Asked({**SCOPES, "words": ["often", "w7", "none"], "most": 10_001}, ("words",), TWO + 50, of_index=True, only_on_postgresql=("numbers",)),
    "best": Asked({**SCOPES, "words": ["often", "w7"], "weights": [3, 900], "limit": 100}, ("words",), TWO + 50, of_index=True, sorts=True),
    "around": Asked({**SCOPES, "ids": ["i7", "i8", "i207"]}, ("idx_chunks_id", "idx_chunks_scope", "numbers"), 50, of_index=True, sorts=True),
    "containing": Asked({**SCOPES, "wanted": "text 7", "limit": 10}, ("idx_chunks_scope",), TWO, of_index=True, sorts=True),
    "people": Asked({**SCOPES, "limit": 10}, ("idx_chunks_scope",), TWO, of_index=True, sorts=True),
    "signatures_of": Asked({**SCOPES, "embedder": "e", "limit": 50_001}, ("signatures",), TWO, of_index=True),
    "vectors_of": Asked({**IDS, "embedder": "e"}, ("vectors",), 4, of_index=True),
}  # fmt: skip

DELETING: dict[str, Asked] = {
    "delete": Asked(IDS, ("idx_chunks_id",), 4),
    "delete_vectors": Asked(IDS, ("vectors",), 4, of_index=True),
    "delete_signatures": Asked({**IDS, **SCOPES}, ("signatures",), TWO, of_index=True),
}


@pytest.fixture(scope="module")
def tables(servers_of_the_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    path = tmp_path_factory.mktemp("plans") / "memory.db"
    url = servers_of_the_session["postgresql"]()
    with SQLiteStore(path), PostgreSQLStore(url, schema_name=SCHEMA):
        pass
    lite = sqlite3.connect(path, isolation_level=None)
    with psycopg.connect(url, autocommit=True) as server:
        for each in (CHUNK, VECTORS, SIGNATURES):
            lite.execute(each.format(**ON_SQLITE))
            server.execute(each.format(**ON_POSTGRESQL).encode())
        lite.execute("ANALYZE")
        for table in (CHUNKS.table, CHUNKS.vectors, CHUNKS.signatures):
            server.execute(f"VACUUM ANALYZE {SCHEMA}.{table}".encode())
        yield {"sqlite": lite, "postgresql": server}
        server.execute(f"DROP SCHEMA {SCHEMA} CASCADE".encode())
    lite.close()


def _statement(name: str, asked: Asked, of: Callable[[type[Any]], Any]) -> tuple[str, Any]:
    """Its text and its parameters."""
    if not asked.of_index:
        statements: FacetStatements = of(KnowledgeStatements)
        values = dict(asked.values)
    else:
        statements = of(statements_of(CHUNKS))
        assert isinstance(statements, IndexStatements)
        values = dict(asked.values)
        words, weights = values.pop("words", None), values.pop("weights", None)
        if weights is not None:
            values |= statements.engine.weighted(statements, values.pop("scopes"), words, weights)
        elif words is not None:
            values |= statements.engine.words(statements, values.pop("scopes"), words, values.pop("most"))
    texts = statements.dialect.texts
    given = {key: texts(value) if isinstance(value, list) else value for key, value in values.items()}
    prepared = getattr(statements, name)
    return prepared.sql, prepared.parameters(given)


INDEXES_OF_POSTGRESQL = {
    "words": "idx_chunks_words",
    "numbers": f"{CHUNKS.table}_pkey",
    "vectors": f"{CHUNKS.vectors}_pkey",
    "signatures": f"{CHUNKS.signatures}_pkey",
}


def _plan(server: psycopg.Connection[Any], text: str, values: Mapping[str, Any], options: str) -> Any:
    return server.execute(f"EXPLAIN ({options}, FORMAT JSON) {text}".encode(), values).fetchall()[0][0][0]["Plan"]


def _generic_plan(server: psycopg.Connection[Any], text: str, values: Mapping[str, Any]) -> Any:
    """The plan for any parameters, which the server may choose for a statement that is prepared."""
    numbers = {name: f"${number}" for number, name in enumerate(values, start=1)}
    server.execute(f"PREPARE asked AS {text % numbers}".encode())
    with server.transaction():
        server.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        given = sql.SQL(", ").join(map(sql.Literal, values.values()))
        explain = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE asked({})").format(given)
        found = server.execute(explain).fetchall()
    server.execute("DEALLOCATE asked")
    return found[0][0][0]["Plan"]


def _check_on_postgresql(plan: Any, asked: Asked) -> None:
    nodes = list(_nodes(plan))
    shown = json.dumps(plan, indent=1)
    used = {node["Index Name"] for node in nodes if "Index Name" in node}
    assert used == {INDEXES_OF_POSTGRESQL.get(index, index) for index in (*asked.indexes, *asked.only_on_postgresql)}, (
        shown
    )
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan"], shown
    assert asked.sorts or not [node for node in nodes if "Sort" in node["Node Type"]], shown
    if "Actual Rows" in plan:
        assert max(map(_rows_read, nodes)) <= asked.rows, shown


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for each in node.get("Plans", []):
        yield from _nodes(each)


def _rows_read(node: Mapping[str, Any]) -> float:
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return float((node["Actual Rows"] + removed) * node["Actual Loops"])


@pytest.mark.parametrize("name", ASKED)
def test_postgresql_finds_chunks_by_index(name: str, tables: dict[str, Any]) -> None:
    text, values = _statement(name, ASKED[name], lambda facet: on_postgresql(facet, SCHEMA))
    _check_on_postgresql(_plan(tables["postgresql"], text, values, "ANALYZE"), ASKED[name])
    _check_on_postgresql(_generic_plan(tables["postgresql"], text, values), ASKED[name])


@pytest.mark.parametrize("name", DELETING)
def test_postgresql_deletes_chunks_by_index(name: str, tables: dict[str, Any]) -> None:
    text, values = _statement(name, DELETING[name], lambda facet: on_postgresql(facet, SCHEMA))
    _check_on_postgresql(_plan(tables["postgresql"], text, values, "COSTS"), DELETING[name])


INDEXES_OF_SQLITE = {
    "words": f"{CHUNKS.words} VIRTUAL TABLE",
    "numbers": "SEARCH memory_chunks USING INTEGER PRIMARY KEY",
    "vectors": f"sqlite_autoindex_{CHUNKS.vectors}_1",
    "signatures": f"sqlite_autoindex_{CHUNKS.signatures}_1",
}


@pytest.mark.parametrize("name", [*ASKED, *DELETING])
def test_sqlite_finds_chunks_by_index(name: str, tables: dict[str, Any]) -> None:
    asked = ASKED.get(name) or DELETING[name]
    text, values = _statement(name, asked, on_sqlite)
    steps = [row[3] for row in tables["sqlite"].execute(f"EXPLAIN QUERY PLAN {text}", values)]
    plan = "\n".join(steps)
    for index in asked.indexes:
        assert INDEXES_OF_SQLITE.get(index, index) in plan, plan
    scanned = [step for step in steps if step.startswith(("SCAN memory", "SCAN near"))]
    assert not [step for step in scanned if ":M1" not in step], plan  # M1 is a question to the full-text table
    assert asked.sorts or "TEMP B-TREE" not in plan, plan
