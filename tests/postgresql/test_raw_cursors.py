"""psycopg sends the statements of a store's own connections as they are: it looks for no placeholders in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, Integer, Text, column, literal, select, values
from sqlalchemy.util import greenlet_spawn

from firefly_memory.databases.sql.postgresql.dialect import PostgreSQLDialect
from firefly_memory.databases.sql.postgresql.engines import blocking_engine, suspending_engine
from firefly_memory.databases.sql.postgresql.url import postgresql_url
from firefly_memory.databases.sql.statements import statements_of
from firefly_memory.entries.sql.statements import EntryStatements
from firefly_memory.testing import Mode
from tests.support.backends import Place

_TEXT = "100 % of %s, %(name)s, %%, :name, $1 and ?"
"""Signs that some driver or other takes for a placeholder."""


class Opened:
    """An engine as a store opens it, for either mode."""

    def __init__(self, engine: Engine, call: Callable[..., Any]) -> None:
        self.engine = engine
        self._call = call

    def run(self, work: Callable[[Connection], Any]) -> Any:
        return self._call(self._on_a_connection, work)

    def _on_a_connection(self, work: Callable[[Connection], Any]) -> Any:
        with self.engine.connect() as connection:
            return work(connection)


@pytest.fixture(params=Mode)
def opened(request: pytest.FixtureRequest, place: Place) -> Iterator[Opened]:
    url = postgresql_url(place.with_driver("psycopg"))
    if request.param is Mode.BLOCKING:
        engine = blocking_engine(url, pool_size=1, timeout=30.0)
        yield Opened(engine, lambda function, *arguments: function(*arguments))
        engine.dispose()
        return
    engine = suspending_engine(url, pool_size=1, timeout=30.0)
    with asyncio.Runner() as runner:
        yield Opened(engine, lambda function, *arguments: runner.run(greenlet_spawn(function, *arguments)))
        runner.run(greenlet_spawn(engine.dispose))


def test_a_statement_is_sent_as_it_is(opened: Opened) -> None:
    statement = f"SELECT '{_TEXT}', $2::int, $1::text, $2::int -- 5 % of them"
    row = opened.run(lambda connection: connection.exec_driver_sql(statement, (_TEXT, 7)).one())
    assert row == (_TEXT, 7, _TEXT, 7)


def test_a_streamed_statement_is_sent_as_it_is(opened: Opened) -> None:
    def streamed(connection: Connection) -> Any:
        connection = connection.execution_options(isolation_level="READ COMMITTED", stream_results=True)
        return connection.exec_driver_sql(f"SELECT '{_TEXT}', $1::text", (_TEXT,)).one()

    assert opened.run(streamed) == (_TEXT, _TEXT)


def test_what_sqlalchemy_compiles_for_it_has_no_doubled_signs(opened: Opened) -> None:
    name = column(_TEXT, Text)
    rows = values(column("number", Integer), name, name="rows").data([(7, "a"), (8, "%s")])
    query = select(rows.c.number % 5, name, literal(_TEXT)).where(name.like("%s%")).select_from(rows)
    row = opened.run(lambda connection: connection.execute(query).one())
    assert row == (3, "%s", _TEXT)
    assert list(row._mapping)[1] == _TEXT


def test_statements_have_numbers_for_their_parameters(opened: Opened) -> None:
    statement = statements_of(PostgreSQLDialect, opened.engine.dialect, "own").of(EntryStatements).load
    assert "$1" in statement.sql
    assert "%(" not in statement.sql
