"""Every table, index and check of every facet, once, for SQLite and PostgreSQL.

The Alembic revisions in ``migrations/`` produce exactly this (a test compares them), statements are built from it.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import MetaData

from firefly_memory.databases.sql.schema import names
from firefly_memory.databases.sql.schema.columns import PostgreSQLColumns, SQLiteColumns
from firefly_memory.facets import Facet, all_facets

VERSION_TABLE = "firefly_memory_version"
"""Alembic's table, under a name of our own: the application may keep its ``alembic_version`` in the same place."""

POSTGRESQL_SCHEMA = names.POSTGRESQL_SCHEMA
"""The PostgreSQL schema of all tables, unless ``schema_name`` names another."""


def metadata(schema_name: str | None) -> MetaData:
    """All tables of all facets: in a PostgreSQL schema, or, for ``None``, on SQLite."""
    return _metadata(schema_name, all_facets())


@cache
def _metadata(schema_name: str | None, facets: tuple[Facet, ...]) -> MetaData:
    columns = SQLiteColumns() if schema_name is None else PostgreSQLColumns()
    tables = MetaData(schema=schema_name)
    for facet in facets:
        define = facet.stored("tables")
        if define is not None:
            define(tables, columns)
    return tables


def tables_of(facet: Facet) -> set[str]:
    """The names of a facet's tables."""
    tables = MetaData()
    define = facet.stored("tables")
    if define is not None:
        define(tables, SQLiteColumns())
    return set(tables.tables)
