"""A search with filters costs no more rows than one without: the query plans of every database show it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from firefly_memory import PostgreSQLStore
from firefly_memory.concurrency.sync_bridge import run_without_loop as run
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.mongodb.documents import fact_document
from firefly_memory.longterm.rows import FACTS
from firefly_memory.search.filters import conditions_of, filters_in
from firefly_memory.search.index import Vector
from firefly_memory.search.sql.statements import IndexStatements, statements_of
from tests.support.long_term_logs import ENGLISH, fact, written
from tests.support.mongodb_chunks import Commands
from tests.support.mongodb_plans import Planned
from tests.support.mongodb_tombstones import Somewhere
from tests.support.sql_statements import on_postgresql, on_sqlite

SCHEMA = "fact_search_plans"
CONDITIONS = conditions_of(FACTS.filters, {"fact_type": ("usual", "other"), "confidence": 0.5})

# Texts that both databases read. There are 200 places with 100 facts each.
FACT = """INSERT INTO {schema}memory_facts (id, space, fact_scope, scope_id, key, value, fact_type, confidence,
      times_confirmed, times_contradicted, versions, written_by, access_count, valid_from, created_at, newest,
      scope, position, searchable, words)
    SELECT 'i' || n, 'default', 'x', 'x', 'key ' || n, '1', CASE n % 4 WHEN 0 THEN 'rare' ELSE 'usual' END,
      (n / 200 % 5) / 4.0, 1, 0, 0, 'w', 0, {now}, {now}, {now}, '_s' || (n % 200), 0, 'key', {words} FROM {numbers}"""
SIGNATURE = """INSERT INTO {schema}memory_facts_signatures (scope, embedder, id, signature)
    SELECT '_s' || (n % 200), 'e', 'i' || n, {bits} FROM {numbers}"""
ON_SQLITE = {
    "schema": "",
    "now": "'2026-05-06T00:00:00.100000+00:00'",
    "words": "'_s' || (n % 200) || ' often w' || (n / 200)",
    "bits": "x'00'",
    "numbers": "(WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 19999) SELECT n FROM c)",
}
ON_POSTGRESQL = {
    "schema": f"{SCHEMA}.",
    "now": "CAST('2026-05-06T00:00:00.100000+00:00' AS TIMESTAMPTZ)",
    "words": "ARRAY['_s' || (n % 200), 'often', 'w' || (n / 200)]",
    "bits": r"'\x00'",
    "numbers": "generate_series(0, 19999) AS numbers(n)",
}

ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "best": ({"words": ["often", "w7"], "weights": [3, 900], "limit": 100}, "words"),
    "around": ({"ids": ["i7", "i8", "i207"]}, "idx_facts_id"),
    "containing": ({"wanted": "key", "limit": 10}, "idx_facts_"),
    "signatures_of": ({"embedder": "e", "limit": 50_001}, "signatures"),
}
"""What each statement is asked of two places, and by which index it finds its rows."""


def _asked(name: str, of: Any) -> tuple[str, Any]:
    statements: IndexStatements = of(statements_of(FACTS, filters_in(CONDITIONS)))
    values, texts, scopes = dict(ASKED[name][0]), statements.dialect.texts, ["_s7", "_s8"]
    if "weights" in values:
        values |= statements.engine.weighted(statements, scopes, values.pop("words"), values.pop("weights"))
    else:
        values |= {"scopes": texts(scopes)}
    if "ids" in values:
        values["ids"] = texts(values["ids"])
    prepared = getattr(statements, name)
    return prepared.sql, prepared.parameters({**values, **statements.wanted(CONDITIONS)})


@pytest.fixture(scope="module")
def postgresql(servers_of_the_session: Any) -> Iterator[psycopg.Connection[Any]]:
    url = servers_of_the_session["postgresql"]()
    with PostgreSQLStore(url, schema_name=SCHEMA), psycopg.connect(url, autocommit=True) as server:
        for each in (FACT, SIGNATURE):
            server.execute(each.format(**ON_POSTGRESQL).encode())
        server.execute(f"VACUUM ANALYZE {SCHEMA}.memory_facts, {SCHEMA}.memory_facts_signatures".encode())
        yield server
        server.execute(f"DROP SCHEMA {SCHEMA} CASCADE".encode())


@pytest.mark.parametrize("name", ASKED)
def test_postgresql_filters_what_an_index_has_found(name: str, postgresql: psycopg.Connection[Any]) -> None:
    text, values = _asked(name, lambda kind: on_postgresql(kind, SCHEMA))
    (found,) = postgresql.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}".encode(), values).fetchall()[0]
    shown, nodes = json.dumps(found, indent=1), list(_nodes(found[0]["Plan"]))
    index = {"words": "idx_facts_words", "signatures": "memory_facts_signatures_pkey"}.get(
        ASKED[name][1], ASKED[name][1]
    )
    assert any(node.get("Index Name", "").startswith(index) for node in nodes), shown
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan"], shown
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    read = [(node["Actual Rows"] + sum(node.get(each, 0) for each in removed)) * node["Actual Loops"] for node in nodes]
    assert max(read) <= 210, shown


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for each in node.get("Plans", []):
        yield from _nodes(each)


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory, new_sqlite_file: Path) -> Iterator[sqlite3.Connection]:
    file = shutil.copy(new_sqlite_file, tmp_path_factory.mktemp("fact_search") / "memory.db")
    connection = sqlite3.connect(file, isolation_level=None)
    for each in (FACT, SIGNATURE):
        connection.execute(each.format(**ON_SQLITE))
    yield connection
    connection.close()


@pytest.mark.parametrize("name", ASKED)
def test_sqlite_filters_what_an_index_has_found(name: str, sqlite: sqlite3.Connection) -> None:
    text, values = _asked(name, on_sqlite)
    steps = [row[3] for row in sqlite.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    plan = "\n".join(steps)
    index = {"words": "memory_facts_words VIRTUAL TABLE", "signatures": "sqlite_autoindex_memory_facts_signatures_1"}
    assert index.get(ASKED[name][1], ASKED[name][1]) in plan, plan
    scanned = [step for step in steps if step.startswith(("SCAN memory", "SCAN near"))]
    assert not [step for step in scanned if ":M1" not in step], plan  # M1 is a question to the full-text table
    done: list[int] = []
    sqlite.set_progress_handler(lambda: done.append(100), 100)
    sqlite.execute(text, values).fetchall()
    sqlite.set_progress_handler(None, 0)
    assert sum(done) <= 30_000, plan


def _best(scopes: list[str], weights: dict[str, int]) -> Callable[[Any], Any]:
    return lambda log: log.facts.index.best(scopes, weights, 30, CONDITIONS)


OF_WORDS, OF_SIGNATURES = "scope_1_words_1__id_1_fact_type_1_confidence_1", "scope_1_embedder_1_id_1_signature_1"


def test_mongodb_filters_in_the_index(replica_set: Somewhere) -> None:
    commands = Commands()
    with replica_set.listened(commands) as store:
        log = store.blocking.log(LONG_TERM_LOG)
        types = ["usual", "rare", "other"]
        facts = [
            fact(f"key {n}", f"often n{n % 20}", fact_type=types[n % 3], confidence=n % 5 / 4, scope="agent", scope_id="ab"[n % 2])
            for n in range(1_000)
        ]  # fmt: skip
        run(log.facts.set([written(row, Vector("e", b"\0" * 4, b"\0")) for row in facts[:60]], ENGLISH))
        replica_set.database[FACTS.table].insert_many([fact_document(row) for row in facts[60:]])
        planned, scopes = Planned(replica_set, log, commands), [facts[0].scope]
        passing = sum(row.scope == scopes[0] and row.fact_type != "rare" and row.confidence >= 0.5 for row in facts)
        for weights, keys in (({"often": 1}, 150), ({"often": 2, "n4": 3}, 600)):
            plan = planned(_best(scopes, weights))
            assert (plan.indexes, plan.documents) == ({OF_WORDS}, 0)
            assert plan.keys <= keys
        plan = planned(lambda log: log.facts.index.signatures(scopes, "e", 1_000, CONDITIONS))
        assert (plan.indexes, plan.documents) == ({OF_WORDS, OF_SIGNATURES}, 0)
        assert plan.keys <= 500 + 2 * passing
        found = run(log.facts.index.signatures(scopes, "e", 1_000, CONDITIONS))
        assert found is not None
        assert len(found.ids) == sum(row.scope == scopes[0] and row.fact_type != "rare" and row.confidence >= 0.5 for row in facts[:60])  # fmt: skip
        assert run(log.facts.index.signatures(scopes, "e", passing - 1, CONDITIONS)) is None
