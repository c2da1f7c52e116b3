"""R11 for long-term memory in SQL: each read costs only the rows that it gives, however many others there are."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import psycopg
import pytest

from firefly_memory import PostgreSQLStore, SQLiteStore
from firefly_memory.longterm.rows import FactPosition, Filters
from firefly_memory.longterm.sql.list_statements import ListStatements
from firefly_memory.longterm.sql.merging_statements import MergedPeopleStatements, MergingStatements
from firefly_memory.longterm.sql.people_statements import PeopleStatements
from firefly_memory.longterm.sql.statements import FactStatements
from tests.support.long_term_logs import START
from tests.support.sql_statements import on_postgresql, on_sqlite

SCHEMA = "long_term_plans"
FACTS = 20_000
"""Half of them are in one place, the others are of 500 people with 20 facts each."""

NOW = START.isoformat(timespec="microseconds")

# Texts that both databases read: {words} is how each has an array of words.
FACT = """INSERT INTO {schema}memory_facts (id, space, fact_scope, scope_id, key, value, fact_type, confidence,
      times_confirmed, times_contradicted, owner, versions, written_by, access_count, valid_from, created_at, newest,
      scope, position, searchable, words)
    SELECT 'i' || n, 'default', 'x', 'x', 'key ' || n, '1', CASE n % 4 WHEN 0 THEN 'rare' ELSE 'usual' END,
      (n % 5) / 4.0, 1, 0, CASE WHEN n >= 10000 THEN 'chat:' || (n % 500) END, 3, 'w', 0, {now}, {now},
      CAST('2026-05-06T00:00:00.' || (100000 + n) || '+00:00' AS {instant}),
      CASE WHEN n < 10000 THEN '_big' ELSE '_p' || (n % 500) END, 0, 'key ' || n || {newline} || '1', {words}
    FROM {numbers}"""
VERSION = """INSERT INTO {schema}memory_fact_versions
      (fact_id, number, value, confidence, owner, valid_from, superseded_at)
    SELECT 'i' || (n % 10000), 1 + n / 10000, '0', 1.0, CASE WHEN n % 10 = 0 THEN 'chat:' || (n % 500) END,
      CAST('2026-05-06T00:00:00.' || (100000 + n) || '+00:00' AS {instant}), {now} FROM {numbers}"""
LONG_HISTORY = """INSERT INTO {schema}memory_fact_versions
      (fact_id, number, value, confidence, owner, valid_from, superseded_at)
    SELECT 'i19999', 4 + n, '0', 1.0, NULL, CAST('2026-05-06T00:00:00.' || (100000 + n) || '+00:00' AS {instant}), {now}
    FROM {numbers} WHERE n < 2000"""
PERSON = """INSERT INTO {schema}memory_users (id, space, canonical_id, word, email, total_conversations, stands_for,
      written_by, first_seen, updated_at)
    SELECT 'u' || n, 's' || (n % 4), 'chat:' || n, '_p' || n, n || '@example.org', 0, '_p' || (n - n % 10), 'w', {now},
      {now} FROM {numbers} WHERE n < 2000"""
ON_SQLITE = {
    "schema": "",
    "now": f"'{NOW}'",
    "instant": "TEXT",
    "newline": "char(10)",
    "words": "'_big often w' || n",
    "numbers": "(WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 19999) SELECT n FROM c)",
}
ON_POSTGRESQL = {
    "schema": f"{SCHEMA}.",
    "now": f"CAST('{NOW}' AS TIMESTAMPTZ)",
    "instant": "TIMESTAMPTZ",
    "newline": "chr(10)",
    "words": "ARRAY['_big', 'w' || n]",
    "numbers": "generate_series(0, 19999) AS numbers(n)",
}


class Asked(NamedTuple):
    """What a statement is asked, and how it has to find its rows."""

    values: Mapping[str, Any]
    indexes: tuple[str, ...]
    rows: int
    """The most that any step reads."""
    sorts: bool = False
    of: type[Any] = FactStatements
    shape: tuple[bool, ...] | None = None
    """That of a lookup."""


LOOKUP = {"session": None, "user": "_p57", "agent": "_p7", "everybody": "_big", "key": "key 10050"}
EVERYWHERE = (True, True, True, True)
IDS = {"ids": ["i7", "i8", "i9", "none"]}
PEOPLE: dict[str, Any] = {"of": PeopleStatements}
OF_BOTH = {"source": "_p50", "target": "_p60", "old_owner": "chat:50", "new_owner": "chat:60", "space": "default"}
OF_VERSIONS = ("idx_fact_versions_fact",)

ASKED: dict[str, Asked] = {
    "seen": Asked(LOOKUP, ("idx_facts_key", "idx_users_word"), 4, sorts=True, shape=EVERYWHERE),
    "seen in three places": Asked(
        LOOKUP, ("idx_facts_key", "idx_users_word"), 4, sorts=True, shape=(False, True, True, True)
    ),
    "seen of a person": Asked(LOOKUP, ("idx_facts_key", "idx_users_word"), 1, shape=(False, True, False, False)),
    "seen by everybody": Asked(LOOKUP, ("idx_facts_key",), 1, shape=(False, False, False, True)),
    "count_access": Asked(
        {**LOOKUP, "now": NOW}, ("idx_facts_key", "idx_users_word"), 4, sorts=True, shape=EVERYWHERE
    ),
    "count_access by everybody": Asked({**LOOKUP, "now": NOW}, ("idx_facts_key",), 1, shape=(False, False, False, True)),
    "said_at": Asked(
        {**LOOKUP, "key": "key 19999", "user": "_p499", "at": "2026-05-06T00:00:00.110000+00:00"},
        ("idx_facts_key", "idx_users_word", "idx_fact_versions_said"), 5, sorts=True,
    ),
    "at_place": Asked({"scope": "_big", "key": "key 7"}, ("idx_facts_key",), 1),
    "these": Asked(IDS, ("idx_facts_id",), 4),
    "page": Asked({"after": "i7", "limit": 50}, ("idx_facts_id",), 50),
    "of_owner": Asked({"owner": "chat:7", "after": "i7", "limit": 10}, ("idx_facts_owner",), 20),
    "without_vector": Asked({"embedder": "e", "after": "i7", "limit": 50}, ("idx_facts_id", "vectors"), 50),
    "lacking": Asked({**IDS, "embedder": "e"}, ("idx_facts_id", "vectors"), 4),
    "confirm": Asked({"this_id": "i7", "space": "default", "written_by": "x", "newest": NOW}, ("idx_facts_id",), 1),
    "versions_of": Asked({"fact_id": "i19999", "after": 100, "limit": 50}, OF_VERSIONS, 50),
    "versions_of_owner": Asked(
        {"owner": "chat:70", "after": "i7", "after_number": 0, "limit": 10}, ("idx_fact_versions_owner",), 10, sorts=True
    ),
    "page_of_versions": Asked({"after": "i7", "after_number": 0, "limit": 50}, OF_VERSIONS, 50),
    "delete_versions": Asked({"ids": ["i7"], "names": ["i7/1"]}, ("idx_fact_versions_",), 4),
    "delete_versions_of": Asked({"ids": ["i7"]}, ("idx_fact_versions_",), 4),
    "delete": Asked(IDS, ("idx_facts_id",), 4),
    "root": Asked({"word": "_p57"}, ("idx_users_word",), 1, **PEOPLE),
    "with_word": Asked({"word": "_p57"}, ("idx_users_word",), 1, **PEOPLE),
    "held": Asked({"words": ["_p57", "_p58"]}, ("idx_users_word",), 2, sorts=True, **PEOPLE),
    "in_order": Asked({"space": "s1", "limit": 50}, ("idx_users_order",), 50, **PEOPLE),
    "in_order_after": Asked({"space": "s1", "limit": 50, "at": NOW, "after": "u500"}, ("idx_users_order",), 50, **PEOPLE),
    "people by id": Asked({"after": "u7", "limit": 50}, ("idx_users_id",), 50, **PEOPLE),
    "these people": Asked({"ids": ["u7", "u8"]}, ("idx_users_id",), 2, sorts=True, **PEOPLE),
    "same_people": Asked({"ids": ["chat:57", "none"]}, ("idx_users_canonical_id", "idx_users_stands_for"), 10, sorts=True, **PEOPLE),
    "group": Asked({"words": ["_p50", "_p3"]}, ("idx_users_word", "idx_users_stands_for"), 12, sorts=True, **PEOPLE),
    "count_conversation": Asked(
        {"word": "_p57", "written_by": "x", "last_conversation_at": NOW, "updated_at": NOW}, ("idx_users_word",), 1, **PEOPLE
    ),
    "locked": Asked(OF_BOTH, ("idx_facts_", "idx_facts_owner"), 60, sorts=True, of=MergingStatements),
    "some_of_source": Asked({"source": "_p50", "limit": 10}, ("idx_facts_",), 10, of=MergingStatements),
    "same_keys": Asked({"target": "_big", "keys": ["key 7", "key 8"]}, ("idx_facts_key",), 2, sorts=True, of=MergingStatements),
    "give_facts": Asked({**OF_BOTH, **IDS}, ("idx_facts_",), 40, of=MergingStatements),
    "give_versions": Asked(OF_BOTH, ("idx_fact_versions_owner", "idx_facts_id"), 41, of=MergingStatements),
    "follow": Asked(
        {"source": "_p50", "target": "_p60", "target_id": "u60", "updated_at": NOW}, ("idx_users_stands_for",), 20,
        of=MergedPeopleStatements,
    ),
}  # fmt: skip

NAMES = {
    "people by id": "page", "these people": "these", "seen in three places": "seen", "seen of a person": "seen",
    "seen by everybody": "seen", "count_access by everybody": "count_access",
}  # fmt: skip

AFTER = FactPosition(0.75, START.replace(hour=0, minute=0, second=0, microsecond=110_003), "i10003")
LISTS: dict[str, tuple[list[str], Filters, FactPosition | None, int]] = {
    "a place": (["_big"], Filters(), None, 10),
    "after a position": (["_big"], Filters(), AFTER, 11),
    "places": (["_p7", "_p8", "_p9", "_big"], Filters(), None, 40),
    "places after a position": (["_p7", "_big"], Filters(), AFTER, 20),
    "of some confidence": (["_big"], Filters(min_confidence=0.5), AFTER, 11),
    "of a type": (["_big"], Filters(types=("rare",)), None, 50),
    "places of a person": (["_p57", "_p8", "_p9", "_big"], Filters(), None, 40),
    "after a position of a person": (["_p57", "_big"], Filters(), AFTER, 20),
    "of a person": (["_p57"], Filters(), None, 10),
    "with a pattern": (["_p7", "_big"], Filters(pattern=("key", "1"), min_confidence=0.5), None, 120),
}


@pytest.fixture(scope="module")
def tables(servers_of_the_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """SQLite's once more with statistics, and PostgreSQL's with them."""
    path = tmp_path_factory.mktemp("plans") / "memory.db"
    url = servers_of_the_session["postgresql"]()
    with SQLiteStore(path), PostgreSQLStore(url, schema_name=SCHEMA):
        pass
    lite = sqlite3.connect(path, isolation_level=None)
    with psycopg.connect(url, autocommit=True) as server:
        for each in (FACT, VERSION, LONG_HISTORY, PERSON):
            lite.execute(each.format(**ON_SQLITE))
            server.execute(each.format(**ON_POSTGRESQL).encode())
        for run, schema in ((lite.execute, ""), (server.execute, f"{SCHEMA}.")):
            run(f"UPDATE {schema}memory_facts SET versions = 3000 WHERE id = 'i19999'")
            run(f"UPDATE {schema}memory_facts SET valid_from = {ON_POSTGRESQL['now'] if schema else ON_SQLITE['now']}")
        for table in ("memory_facts", "memory_fact_versions", "memory_users"):
            server.execute(f"VACUUM ANALYZE {SCHEMA}.{table}".encode())
        with_statistics = sqlite3.connect(":memory:", isolation_level=None)
        lite.backup(with_statistics)
        with_statistics.execute("ANALYZE")
        yield {"sqlite": lite, "sqlite with statistics": with_statistics, "postgresql": server}
        with_statistics.close()
        server.execute(f"DROP SCHEMA {SCHEMA} CASCADE".encode())
    lite.close()


Of = Callable[[type[Any]], Any]


def _asked(name: str, of: Of) -> tuple[str, Any]:
    asked = ASKED[name]
    statements = of(asked.of)
    given = {
        key: statements.dialect.texts(value) if isinstance(value, list) else value
        for key, value in asked.values.items()
    }
    prepared = getattr(statements, NAMES.get(name, name))
    if asked.shape is not None:
        prepared = prepared[asked.shape]
    return prepared.sql, prepared.parameters(given)


def _list(name: str, of: Of) -> tuple[str, Any]:
    words, filters, after, _ = LISTS[name]
    person = words[0] if name.endswith("of a person") else None
    statement, values = of(ListStatements).asked(words, filters, 10, after, person)
    return statement.sql, statement.parameters(values)


def _on_postgresql(facet: type[Any]) -> Any:
    return on_postgresql(facet, SCHEMA)


def _plan(server: psycopg.Connection[Any], asked: tuple[str, Any]) -> tuple[str, set[str], list[dict[str, Any]]]:
    text, values = asked
    with server.transaction(force_rollback=True):
        (found,) = server.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}".encode(), values).fetchall()[0]
    nodes = list(_nodes(found[0]["Plan"]))
    return json.dumps(found, indent=1), {node["Index Name"] for node in nodes if "Index Name" in node}, nodes


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for each in node.get("Plans", []):
        yield from _nodes(each)


def _most_read(nodes: list[dict[str, Any]]) -> float:
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    read = [(node["Actual Rows"] + sum(node.get(each, 0) for each in removed)) * node["Actual Loops"] for node in nodes]
    return float(max(read))


@pytest.mark.parametrize("name", ASKED)
def test_postgresql_finds_by_index(name: str, tables: dict[str, Any]) -> None:
    asked = ASKED[name]
    shown, used, nodes = _plan(tables["postgresql"], _asked(name, _on_postgresql))
    for index in asked.indexes:
        assert any(each.startswith("memory_facts_vectors" if index == "vectors" else index) for each in used), shown
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan"], shown
    assert asked.sorts or not [node for node in nodes if "Sort" in node["Node Type"]], shown
    assert _most_read(nodes) <= asked.rows, shown


@pytest.mark.parametrize("name", LISTS)
def test_postgresql_reads_the_first_of_each_place_in_the_order_of_the_index(name: str, tables: dict[str, Any]) -> None:
    shown, used, nodes = _plan(tables["postgresql"], _list(name, _on_postgresql))
    assert "idx_facts_list" in used, shown
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan"], shown
    assert _most_read(nodes) <= LISTS[name][3], shown


SQLITE = pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("sqlite with statistics", marks=pytest.mark.thorough)]
)


def _steps_of(connection: sqlite3.Connection, asked: tuple[str, Any]) -> list[str]:
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {asked[0]}", asked[1])]


@SQLITE
@pytest.mark.parametrize("name", ASKED)
def test_sqlite_finds_by_index(name: str, database: str, tables: dict[str, Any]) -> None:
    asked = ASKED[name]
    steps = _steps_of(tables[database], _asked(name, on_sqlite))
    plan = "\n".join(steps)
    for index in asked.indexes:
        assert ("sqlite_autoindex_memory_facts_vectors_1" if index == "vectors" else index) in plan, plan
    assert "SCAN memory" not in plan, plan
    assert asked.sorts or "TEMP B-TREE FOR ORDER" not in plan, plan


@SQLITE
@pytest.mark.parametrize("name", LISTS)
def test_sqlite_reads_the_first_of_each_place_in_the_order_of_the_index(
    name: str, database: str, tables: dict[str, Any]
) -> None:
    connection, asked, steps = tables[database], _list(name, on_sqlite), list[int]()
    plan = "\n".join(_steps_of(connection, asked))
    assert "idx_facts_list" in plan, plan
    assert "SCAN memory" not in plan, plan
    connection.set_progress_handler(lambda: steps.append(100), 100)
    connection.execute(*asked).fetchall()
    connection.set_progress_handler(None, 0)
    assert sum(steps) <= 60 * LISTS[name][3] + 1_000, plan


def test_a_read_of_a_fact_is_counted_without_a_change_to_any_index(tables: dict[str, Any]) -> None:
    """A HOT update of PostgreSQL: its statistics of the transaction tell."""
    server = tables["postgresql"]
    text, values = _asked("count_access", _on_postgresql)
    hot = f"SELECT pg_stat_get_xact_tuples_hot_updated('{SCHEMA}.memory_facts'::regclass)"
    with server.transaction(force_rollback=True):
        before = server.execute(hot.encode()).fetchone()[0]
        for _ in range(3):  # the first ones may have to go to another page
            server.execute(text.encode(), values)
        assert server.execute(hot.encode()).fetchone()[0] > before
