"""R11 for feeds in SQL: query plans show that reading the newest messages costs no more in a long feed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from firefly_memory import PostgreSQLStore, SQLiteStore
from firefly_memory.feeds.sql.statements import FeedStatements
from tests.support.sql_statements import on_postgresql, on_sqlite

MESSAGES = 20_000
HALF = MESSAGES // 2
KEYS = 1_000
NOW = "2024-06-01T00:00:00.000000+00:00"
SCHEMA = "feed_plans"


def agents(who: str, count: int) -> list[str]:
    """``new`` agents wrote the newer half of the messages, ``old`` ones the older half, ``no`` agents none."""
    return [f"{who} {number}" for number in range(KEYS) if number % 10][:count]


# The statement, what it is asked with, the index that has to serve it, and the most rows that a node may read on
# PostgreSQL.
ASKED: dict[str, tuple[str, dict[str, Any], str, int]] = {
    "newest of conversation": ("newest_of_conversation", {}, "idx_feed_messages_conversation", 10),
    "newest of globals": ("newest_of_globals", {}, "idx_feed_messages_global", 10),
    "all globals": ("globals", {}, "idx_feed_messages_global", HALF // 10),
    "newest of agent": ("newest_of_agent", {"agent_key": "old 7"}, "idx_feed_messages_agent", 10),
    "newest of three": ("newest_of_agents", {"agent_keys": agents("old", 3)}, "idx_feed_messages_agent", 30),
    "newest of many": ("newest_of_agents", {"agent_keys": agents("new", KEYS)}, "idx_feed_messages_agent", KEYS),
    "newest of old ones": ("newest_of_agents", {"agent_keys": agents("old", KEYS)}, "idx_feed_messages_agent", KEYS),
    "newest of silent ones": ("newest_of_agents", {"agent_keys": agents("no", KEYS)}, "idx_feed_messages_agent", KEYS),
    "all of three": ("agents", {"agent_keys": agents("old", 3)}, "idx_feed_messages_agent", 3 * HALF // KEYS),
    "some after": ("some_after", {"after": HALF}, "memory_feed_messages_pkey", 10),
    "first since": ("first_since", {"before": NOW}, "memory_feed_messages_pkey", 1),
    "one feed": ("feed", {}, "memory_feeds_pkey", 1),
    "page": ("page", {"after": "small 5"}, "idx_feeds_location", 10),
    "of owner": ("of_owner", {"owner": "owner 4", "after": "small 5"}, "idx_feeds_owner", 10),
    "appended": ("appended", {"append_id": f"append {MESSAGES - 3}"}, "memory_feed_messages_pkey", 4),
    "drop": ("drop", {"number": 3}, "memory_feeds_pkey", 1),
    "delete dropped": ("delete_dropped", {"number": 3}, "memory_feed_messages_pkey", 3),
}

_FILL = """INSERT INTO {schema}memory_feed_messages (location, number, agent_key, is_conversation, is_global, message,
    append_id, created_at) SELECT 'large', n, CASE WHEN n % 10 = 0 THEN NULL WHEN n <= {half} THEN 'old ' || (n % {keys})
    ELSE 'new ' || (n % {keys}) END, n % 10 = 0 AND n <= {half}, n % 10 = 0 AND n > {half}, '{{"type": "x"}}',
    'append ' || n, '{now}' FROM {numbers}"""
_HEADS = """INSERT INTO {schema}memory_feeds (location, newest, dropped, owner, created_at, updated_at)
    SELECT CASE n WHEN 1 THEN 'large' ELSE 'small ' || n END, {messages}, 0, CASE n % 4 WHEN 0 THEN 'owner ' || (n % 100)
    END, '{now}', '{now}' FROM {numbers}"""
_SQLITE = "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {messages}) SELECT n FROM s)"


@pytest.fixture(scope="module")
def tables(servers_of_the_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """One feed of many messages among many feeds; SQLite's once more with statistics, and PostgreSQL's with them."""
    path = tmp_path_factory.mktemp("plans") / "memory.db"
    url = servers_of_the_session["postgresql"]()
    with SQLiteStore(path), PostgreSQLStore(url, schema_name=SCHEMA):
        pass
    words: dict[str, Any] = {"messages": MESSAGES, "half": HALF, "keys": KEYS, "now": NOW}
    with sqlite3.connect(path) as connection, psycopg.connect(url, autocommit=True) as server:
        for run, schema, numbers in (
            (connection.execute, "", _SQLITE.format(**words)),
            (server.execute, f"{SCHEMA}.", f"generate_series(1, {MESSAGES}) AS s(n)"),
        ):
            for statement in (_FILL, _HEADS):
                sql: Any = statement.format(schema=schema, numbers=numbers, **words)
                run(sql)
        for table in ("memory_feed_messages", "memory_feeds"):
            server.execute(f"VACUUM ANALYZE {SCHEMA}.{table}".encode())
        connection.commit()
        with_statistics = sqlite3.connect(":memory:")
        connection.backup(with_statistics)
        with_statistics.execute("ANALYZE")
        yield {"sqlite": connection, "sqlite with statistics": with_statistics, "postgresql": server}
        with_statistics.close()
        server.execute(f"DROP SCHEMA {SCHEMA} CASCADE".encode())
    connection.close()


def prepared(statements: FeedStatements, asked: str) -> tuple[str, Any]:
    name, values, *_ = ASKED[asked]
    statement = getattr(statements, name)
    values = {"location": "large", "limit": 10, **values}
    if "agent_keys" in values:
        values["agent_keys"] = statements.dialect.texts(values["agent_keys"])
    return statement.sql, statement.parameters(values)


@pytest.mark.parametrize("asked", ASKED)
def test_postgresql_reads_by_index_and_no_more_than_it_returns(asked: str, tables: dict[str, Any]) -> None:
    *_, index, most = ASKED[asked]
    sql, parameters = prepared(on_postgresql(FeedStatements, SCHEMA), asked)
    server = tables["postgresql"]
    with server.transaction(force_rollback=True):
        (plan,) = server.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}".encode(), parameters).fetchone()
    assert index in json.dumps(plan)
    assert "Seq Scan" not in json.dumps(plan)
    assert most_rows_read(plan[0]["Plan"]) <= most


def most_rows_read(node: dict[str, Any]) -> float:
    here = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return float(max([here, *map(most_rows_read, node.get("Plans", []))]))


SQLITE = pytest.mark.parametrize("database", ["sqlite", "sqlite with statistics"])


@SQLITE
@pytest.mark.parametrize("asked", ASKED)
def test_sqlite_reads_by_index(asked: str, database: str, tables: dict[str, Any]) -> None:
    *_, index, _ = ASKED[asked]
    sql, parameters = prepared(on_sqlite(FeedStatements), asked)
    rows = tables[database].execute(f"EXPLAIN QUERY PLAN {sql}", parameters).fetchall()
    plan = [row[3] for row in rows if "memory_" in row[3] or "own" in row[3] or "B-TREE" in row[3]]
    of_primary_key = index.replace("_pkey", "_1").replace("memory_", "sqlite_autoindex_memory_")
    assert any(of_primary_key in each for each in plan)
    assert not any("SCAN memory" in each for each in plan)
    if asked.startswith("newest of") and "agent_keys" in ASKED[asked][1]:
        bodies = [each for each in plan if each.endswith("_messages_1 (location=? AND number=?)")]
        assert len(bodies) == 1, "the bodies of the messages that are wanted, and of no others"
        assert all(
            index in each and "agent_key=?" in each for each in plan if "B-TREE" not in each and each not in bodies
        )
    elif asked != "all of three":
        assert not any("B-TREE" in each for each in plan)


@SQLITE
def test_sqlite_reads_few_rows_for_a_team(database: str, tables: dict[str, Any]) -> None:
    """SQLite has no plan that says how many rows it reads; its virtual machine counts its steps."""
    connection, steps = tables[database], list[int]()
    for asked in ("newest of many", "newest of old ones", "newest of silent ones"):
        sql, parameters = prepared(on_sqlite(FeedStatements), asked)
        connection.set_progress_handler(lambda: steps.append(100), 100)
        connection.execute(sql, parameters).fetchall()
        connection.set_progress_handler(None, 0)
        assert sum(steps) < 60 * KEYS, "about as many steps for each agent, however long the feed is"
        steps.clear()
