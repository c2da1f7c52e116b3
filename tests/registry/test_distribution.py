"""Facets that say by which column their tables may be distributed have statements that Citus would run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pytest
from sqlalchemy import (
    Column,
    DateTime,
    Index,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    case,
    cast,
    create_engine,
    delete,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from firefly_memory.databases.sql.postgresql.dialect import PostgreSQLDialect
from firefly_memory.databases.sql.schema.metadata import metadata, tables_of
from firefly_memory.databases.sql.statements import Statements
from firefly_memory.facets import Facet, all_facets
from tests.support.distribution import refusals
from tests.support.facet_samples import of_several_nodes
from tests.support.sql_statements import statements_of_facet

SCHEMA = "distributed"


def distributed() -> dict[str, str]:
    """The distribution column of each table of the library that has one."""
    found: dict[str, str] = {}
    for facet in all_facets():
        key = key_of(facet)
        found |= {table: key for table in tables_of(facet) if key is not None}
    return found


def key_of(facet: Facet) -> str | None:
    key = getattr(facet.storage, "distribution_key", None)
    return key if isinstance(key, str) else None


class Constructs(PostgreSQLDialect):
    """Leaves statements as the constructs that they are made of."""

    def compiled(self, construct: Any) -> Any:
        return construct


def constructs(driver: str) -> dict[str, Any]:
    """Every statement of the distributed facets, by the facet and the class that defines it."""
    found: dict[str, Any] = {}
    dialect = Constructs(create_engine(f"postgresql+{driver}://").dialect)
    for facet in all_facets():
        if key_of(facet) is None:
            continue
        classes = list(statements_of_facet(facet))
        assert classes, facet.name
        for kind in {type(Statements(dialect, SCHEMA).of(each)) for each in classes}:
            made = kind(dialect, SCHEMA)
            for definer in kind.__mro__:
                for name, value in vars(definer).items():
                    if isinstance(value, cached_property):
                        found.setdefault(f"{facet.name}: {definer.__name__}.{name}", getattr(made, name))
    return found


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg", "psycopg2"])
def test_citus_runs_every_statement_of_a_distributed_facet(driver: str) -> None:
    keys, statements = distributed(), constructs(driver)
    assert {name.partition(".")[0] for name in statements} >= {
        "entries: EntryStatements",
        "entries: PostgreSQLEntryStatements",
        "entries: LookingStatements",
        "conversations: ConversationStatements",
        "conversations: PostgreSQLConversationStatements",
        "conversations: LookingStatements",
        "feeds: FeedStatements",
        "feeds: PostgreSQLFeedStatements",
    }
    refused = {name: found for name, each in statements.items() if (found := refusals(each, keys))}
    assert refused.keys() == of_several_nodes().keys(), refused


_TABLES, _INSTANT = MetaData(), DateTime(timezone=True)
_THINGS = Table("things", _TABLES, *(Column(name, Text) for name in ("key", "name")), Column("at", _INSTANT))
_PARTS = Table("parts", _TABLES, Column("key", Text), Column("name", Text))
_KEYS = {"things": "key", "parts": "key"}
_KEY, _NOW = bindparam("key", type_=Text), cast(bindparam("now", type_=Text), _INSTANT)
_ONE: Any = literal_column("1")


def _upsert(**clause: Any) -> Any:
    new = insert(_THINGS).values(key=_KEY, name="name")
    return new.on_conflict_do_update(index_elements=["key"], **{"set_": {"name": new.excluded.name}, **clause})


def _chain(first: Select[Any]) -> Any:
    chain = first.cte("chain", recursive=True)
    return select(chain.union_all(select(_THINGS.c.key).where(_THINGS.c.name == chain.c.key)).c.key)


def _writing(write: Any) -> Any:
    return select(_ONE).add_cte(write.cte("written"))


PLANTED = {
    "a cast of text to datetime in DO UPDATE SET": _upsert(set_={"at": case((_THINGS.c.at <= _NOW, _NOW))}),
    "now() in DO UPDATE SET": _upsert(set_={"at": func.now()}),
    "a cast of text to datetime in the WHERE of ON CONFLICT": _upsert(where=_THINGS.c.at <= _NOW),
    "a change of the distribution column key": _upsert(set_={"key": "other"}),
    "a change of the distribution column key ": update(_THINGS).values(key="other"),
    "a recursive CTE without a filter on the distribution column": _chain(select(_THINGS.c.key)),
    "a recursive CTE without a filter on the distribution column ": _chain(
        select(_THINGS.c.key).where(_THINGS.c.key == _KEY)
    ),
    "a cast of text to datetime in CASE or COALESCE of UPDATE or DELETE": delete(_THINGS).where(
        _THINGS.c.at < func.coalesce(_THINGS.c.at, _NOW)
    ),
    "a cast of datetime to text of a column in UPDATE or DELETE": delete(_THINGS).where(
        cast(_THINGS.c.at, Text) == "today"
    ),
    "random() in UPDATE or DELETE": update(_THINGS).values(name=func.random()),
    "now() in RETURNING": delete(_THINGS).returning(func.now()),
    "an address of a row, which says nothing on several nodes": delete(_THINGS).where(literal_column("ctid") == "x"),
    "FOR UPDATE on several nodes": select(_THINGS.c.name).with_for_update(),
    "a CTE that writes to several nodes": _writing(delete(_THINGS).where(_THINGS.c.name == "x")),
    "a CTE that writes to several nodes ": _writing(insert(_PARTS).from_select(["key"], select(_THINGS.c.name))),
    "things is used with another table, and not by its distribution column": select(_PARTS.c.name).where(
        select(_ONE).where(_THINGS.c.name == _PARTS.c.name).exists()
    ),
}


@pytest.mark.parametrize("refusal", PLANTED)
def test_what_citus_refuses_is_found(refusal: str) -> None:
    assert refusal.strip() in refusals(PLANTED[refusal], _KEYS)


RUNNING = {
    "a parameter of the type itself": _upsert(where=_THINGS.c.at <= bindparam("now", type_=_INSTANT)),
    "a lock on one node": select(_THINGS.c.name).where(_THINGS.c.key == _KEY).with_for_update(),
    "a write to one node": _writing(delete(_THINGS).where(_THINGS.c.key == _KEY)),
    "a join by the keys": select(_PARTS.c.name).join_from(_PARTS, _THINGS, _PARTS.c.key == _THINGS.c.key),
    "a computed value that is sent along": update(_THINGS).values(at=_NOW).where(_THINGS.c.at < _NOW),
    "a query of all nodes": select(_THINGS.c.name).where(_THINGS.c.at < _NOW).order_by(_THINGS.c.at),
}


@pytest.mark.parametrize("statement", RUNNING)
def test_what_citus_runs_is_not_refused(statement: str) -> None:
    assert refusals(RUNNING[statement], _KEYS) == []


def not_distributable(table: Table, key: str) -> Iterator[str]:
    """Why a table cannot be distributed by a column."""
    if key not in table.c:
        yield f"{table.name} has no {key}"
        return
    if key not in table.primary_key.columns:
        yield f"the primary key of {table.name} lacks {key}"
    unique: list[Any] = [each for each in table.constraints if isinstance(each, UniqueConstraint)]
    for each in [*unique, *(index for index in table.indexes if index.unique)]:
        if key not in each.columns:
            yield f"{each.name} is unique and lacks {key}"


def test_every_unique_key_of_a_distributed_table_has_the_distribution_column() -> None:
    tables = metadata(SCHEMA).tables
    found = [why for name, key in distributed().items() for why in not_distributable(tables[f"{SCHEMA}.{name}"], key)]
    assert found == []


def test_a_unique_key_without_the_distribution_column_is_found() -> None:
    table = Table("t", MetaData(), Column("number", Integer, primary_key=True), Column("key", Text), Column("a", Text))
    Index("idx_a", table.c.a, unique=True)
    Index("idx_key_a", table.c.key, table.c.a, unique=True)
    found = ["the primary key of t lacks key", "idx_a is unique and lacks key"]
    assert list(not_distributable(table, "key")) == found
    assert list(not_distributable(table, "other")) == ["t has no other"]


def test_every_unique_index_of_a_sharded_collection_begins_with_the_shard_key() -> None:
    for facet in all_facets():
        key = getattr(facet.storage, "shard_key", None)
        for collection in (facet.stored("collections") or ()) if isinstance(key, str) else ():
            unique = [index.document for index in collection.indexes if index.document.get("unique")]
            assert unique, collection
            assert all(next(iter(index["key"])) == key for index in unique), collection
