"""Stores with the same driver share their compiled statements."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

import pytest
from sqlalchemy import Dialect, create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import MemoryEntry, SQLiteStore
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.postgresql.dialect import PostgreSQLDialect
from firefly_memory.databases.sql.sqlite.dialect import SQLiteDialect
from firefly_memory.databases.sql.statements import Statements, statements_of
from firefly_memory.entries.sql.statements import EntryStatements
from firefly_memory.facets import all_facets
from tests.support.backends import Place
from tests.support.sql_statements import statements_of_facet


def texts(statements: Statements) -> dict[str, list[str]]:
    """The texts of the statements of each facet."""
    found: dict[str, list[str]] = {}
    for facet in all_facets():
        for kind in statements_of_facet(facet):
            of_facet = statements.of(kind)
            for name in dir(type(of_facet)):
                if isinstance(getattr(type(of_facet), name), cached_property):
                    with suppress(NotImplementedError):  # another dialect has it
                        value = getattr(of_facet, name)
                        some = value.values() if isinstance(value, dict) else [value]
                        found[f"{kind.__name__}.{name}"] = [each.sql for each in some if isinstance(each, Statement)]
    return found


def dialect_in_use(driver: str, place: Place) -> Dialect:
    """As it is when its engine has a connection."""
    if driver == "pysqlite":
        engine = create_engine("sqlite://")
    elif driver == "asyncpg":
        return create_async_engine(place.with_driver(driver)).dialect
    else:
        engine = create_engine(place.with_driver(driver))
    engine.connect().close()
    engine.dispose()
    return engine.dialect


@pytest.mark.parametrize(
    ("kind", "driver", "schema_name"),
    [(SQLiteDialect, "pysqlite", None), (PostgreSQLDialect, "psycopg", "own"), (PostgreSQLDialect, "asyncpg", "own")],
)
def test_shared_statements_have_the_text_that_an_engine_would_compile(
    kind: type[SQLDialect], driver: str, schema_name: str | None, place: Place
) -> None:
    shared = texts(statements_of(kind, driver, schema_name))
    assert len(shared) > 50
    assert shared == texts(Statements(kind(dialect_in_use(driver, place)), schema_name))


def test_a_second_store_compiles_nothing_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one.db", "two.db"):
        with SQLiteStore(place.directory / name) as store:
            store.save("n", MemoryEntry(content=name))
            assert [entry.content for entry in store.load("n")] == [name]
        monkeypatch.setattr(SQLDialect, "compiled", None)


def test_each_schema_has_its_own_statements() -> None:
    one, other = (statements_of(PostgreSQLDialect, "psycopg", name).of(EntryStatements) for name in ("one", "other"))
    assert "one.memory_entries" in one.load.sql
    assert "other.memory_entries" in other.load.sql
