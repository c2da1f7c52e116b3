"""The lists of conversations are one range of an index each, however many there are: shown by the planners."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import product
from typing import Any, get_args

import psycopg
import pytest

from firefly_memory import ConversationMemory, PostgreSQLStore, SQLiteStore
from firefly_memory.conversations.log import Order
from firefly_memory.conversations.sql.statements import ConversationStatements
from tests.support.sql_statements import on_postgresql, on_sqlite

OWNERS, LIMIT = 1_000, 10
SIZES = (10, 100_000)  # 1,000,000 of 10,000 owners say the same, but take half a minute to make
NOW = "2024-06-01T00:00:00.000000+00:00"

INDEXES: dict[tuple[Order, bool], str] = {
    ("created", False): "idx_conversations_order",
    ("updated", False): "idx_conversations_activity",
    ("created", True): "idx_conversations_owner_order",
    ("updated", True): "idx_conversations_owner_activity",
}
LISTS = list(product(get_args(Order), (False, True), (False, True)))

_FILL = """INSERT INTO {schema}memory_conversations (conversation_id, turns, tokens, created_at, updated_at, owner)
    SELECT 'conversation ' || number, 1, 10, {created}, {updated}, 'owner ' || (number % {owners})
    FROM {numbers}"""
_POSTGRESQL = {
    "schema": "list_plans.",
    "created": f"timestamptz '{NOW}' - number * interval '1 second'",
    "updated": f"timestamptz '{NOW}' + (number * 31 % 86400) * interval '1 second'",
}
_SQLITE = {
    "schema": "",
    "created": f"strftime('%Y-%m-%dT%H:%M:%f000+00:00', '{NOW}', '-' || number || ' seconds')",
    "updated": f"strftime('%Y-%m-%dT%H:%M:%f000+00:00', '{NOW}', '+' || (number * 31 % 86400) || ' seconds')",
}


@pytest.fixture(scope="module", params=SIZES)
def tables(
    request: pytest.FixtureRequest, servers_of_the_session: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """So many conversations, of 1,000 owners."""
    path = tmp_path_factory.mktemp("plans") / "memory.db"
    url, count = servers_of_the_session["postgresql"](), request.param
    with SQLiteStore(path), PostgreSQLStore(url, schema_name="list_plans"):
        pass
    lite = sqlite3.connect(path, isolation_level=None)
    counted = f"(WITH RECURSIVE n(number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM n WHERE number < {count - 1}) SELECT number FROM n)"
    lite.execute(_FILL.format(**_SQLITE, owners=OWNERS, numbers=counted))
    lite.execute("ANALYZE")
    with psycopg.connect(url, autocommit=True) as server:
        numbers = f"generate_series(0, {count - 1}) AS n(number)"
        fill: Any = _FILL.format(**_POSTGRESQL, owners=OWNERS, numbers=numbers)
        server.execute(fill)
        server.execute("VACUUM ANALYZE list_plans.memory_conversations")
        yield {"sqlite": lite, "postgresql": server, "path": path, "url": url, "count": count}
        server.execute("DROP SCHEMA list_plans CASCADE")
    lite.close()


@pytest.mark.parametrize(("order", "of_owner", "goes_on"), LISTS)
def test_postgresql_reads_one_range_of_an_index(
    order: Order, of_owner: bool, goes_on: bool, tables: dict[str, Any]
) -> None:
    page = on_postgresql(ConversationStatements, "list_plans").page(order, of_owner=of_owner, goes_on=goes_on)
    server = tables["postgresql"]
    if tables["count"] < 100:  # a table of one page is read as a whole, which is right
        server.execute("SET enable_seqscan = off")
    explained = server.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {page.sql}", page.parameters(_asked(order)))
    (node,) = explained.fetchone()[0]
    scan = node["Plan"]["Plans"][0]
    assert (node["Plan"]["Node Type"], scan["Node Type"]) == ("Limit", "Index Scan")
    assert scan["Index Name"] == INDEXES[order, of_owner]
    assert "Filter" not in scan, "all that is read is wanted"
    assert scan["Actual Rows"] <= LIMIT
    assert scan["Shared Hit Blocks"] + scan["Shared Read Blocks"] <= LIMIT + 10, "a row each, and the way to them"


@pytest.mark.parametrize(("order", "of_owner", "goes_on"), LISTS)
def test_sqlite_reads_one_range_of_an_index(
    order: Order, of_owner: bool, goes_on: bool, tables: dict[str, Any]
) -> None:
    page = on_sqlite(ConversationStatements).page(order, of_owner=of_owner, goes_on=goes_on)
    rows = tables["sqlite"].execute(f"EXPLAIN QUERY PLAN {page.sql}", page.parameters(_asked(order))).fetchall()
    (step,) = [row[3] for row in rows]
    way = "SEARCH" if of_owner or goes_on else "SCAN"
    assert step.startswith(f"{way} memory_conversations USING INDEX {INDEXES[order, of_owner]}")
    assert "owner=?" in step or not of_owner


def test_the_pages_of_an_owner_are_complete(tables: dict[str, Any]) -> None:
    with SQLiteStore(tables["path"]) as lite, PostgreSQLStore(tables["url"], schema_name="list_plans") as server:
        for store in (lite, server):
            memory = ConversationMemory(store=store)
            for order in get_args(Order):
                found, after = [], None
                while True:
                    page = memory.list_conversations(7, after, owner="owner 3", order=order)
                    found += [each.conversation_id for each in page]
                    if (after := page.next) is None:
                        break
                assert len(found) == len(set(found)) == max(tables["count"] // OWNERS, 1)


def _asked(order: Order) -> dict[str, Any]:
    """A place in the middle of the list."""
    moment = {"created": "2024-05-31T12:00:00.000000+00:00", "updated": "2024-06-01T12:00:00.000000+00:00"}[order]
    return {"limit": LIMIT, "owner": "owner 3", "moment": moment, "conversation_id": "conversation 4"}
