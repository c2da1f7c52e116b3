"""Stores with the same driver share their compiled statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Dialect, create_engine
from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg, PGDialect_psycopg
from sqlalchemy.ext.asyncio import create_async_engine

from firefly_memory import EntryStore, MemoryEntry, SQLiteStore
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
    elif driver == "aiosqlite":
        return create_async_engine("sqlite+aiosqlite://").dialect
    elif driver == "asyncpg":
        return create_async_engine(place.with_driver(driver)).dialect
    else:
        engine = create_engine(place.with_driver(driver))
    engine.connect().close()
    engine.dispose()
    return engine.dialect


@pytest.mark.parametrize(
    ("kind", "driver", "schema_name"),
    [
        (SQLiteDialect, "pysqlite", None),
        (SQLiteDialect, "aiosqlite", None),
        (PostgreSQLDialect, "psycopg", "own"),
        (PostgreSQLDialect, "psycopg2", "own"),
        (PostgreSQLDialect, "asyncpg", "own"),
    ],
)
def test_shared_statements_have_the_text_that_an_engine_would_compile(
    kind: type[SQLDialect], driver: str, schema_name: str | None, place: Place
) -> None:
    dialect = dialect_in_use(driver, place)
    shared = texts(statements_of(kind, dialect, schema_name))
    assert len(shared) > 50
    assert shared == texts(Statements(kind(dialect), schema_name))


@contextmanager
def _on_an_engine(path: Path) -> Iterator[EntryStore]:
    engine = create_engine(f"sqlite:///{path}")
    with SQLiteStore(engine=engine) as store:
        yield store
    engine.dispose()


@contextmanager
def _in_a_transaction(path: Path) -> Iterator[EntryStore]:
    engine = create_engine(f"sqlite:///{path}")
    with SQLiteStore(engine=engine) as store, engine.begin() as connection:
        yield store.bind(connection)
    engine.dispose()


@pytest.mark.parametrize("open_store", [SQLiteStore, _on_an_engine, _in_a_transaction])
def test_a_second_store_compiles_nothing_again(
    open_store: Callable[[Path], AbstractContextManager[EntryStore]], place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one.db", "two.db"):
        with open_store(place.directory / name) as store:
            store.save("n", MemoryEntry(content=name))
            assert [entry.content for entry in store.load("n")] == [name]
        monkeypatch.setattr(SQLDialect, "compiled", None)


class _OfItsOwn(PGCompiler_psycopg):
    def visit_select(self, *arguments: Any, **options: Any) -> str:
        text = super().visit_select(*arguments, **options)  # type: ignore[no-untyped-call]
        return f"{text} /* its own */"


class _NotOfSQLAlchemy(PGDialect_psycopg):
    supports_statement_cache = True
    statement_compiler = _OfItsOwn


def test_a_dialect_that_is_not_sqlalchemys_has_statements_of_its_own() -> None:
    dialects: tuple[type[Any], ...] = (_NotOfSQLAlchemy, PGDialect_psycopg)
    own, shared = (statements_of(PostgreSQLDialect, each(), None) for each in dialects)
    assert "/* its own */" in own.of(EntryStatements).load.sql
    assert "/* its own */" not in shared.of(EntryStatements).load.sql


def test_each_schema_has_its_own_statements() -> None:
    dialect = create_engine("postgresql+psycopg://").dialect
    one, other = (statements_of(PostgreSQLDialect, dialect, name).of(EntryStatements) for name in ("one", "other"))
    assert "one.memory_entries" in one.load.sql
    assert "other.memory_entries" in other.load.sql
