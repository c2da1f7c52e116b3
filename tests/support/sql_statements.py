"""The statements of a facet, as a store compiles them."""

from __future__ import annotations

from typing import TypeVar

from sqlalchemy import create_engine

from firefly_memory.databases.sql.postgresql.dialect import PostgreSQLDialect
from firefly_memory.databases.sql.sqlite.dialect import SQLiteDialect
from firefly_memory.databases.sql.statements import FacetStatements, Statements

S = TypeVar("S", bound=FacetStatements)


def on_postgresql(facet: type[S], schema_name: str) -> S:
    return Statements(PostgreSQLDialect(create_engine("postgresql+psycopg://").dialect), schema_name).of(facet)


def on_sqlite(facet: type[S]) -> S:
    return Statements(SQLiteDialect(create_engine("sqlite://").dialect), None).of(facet)
