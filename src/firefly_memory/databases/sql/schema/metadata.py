"""Every table, index and check of every facet, once, for SQLite and PostgreSQL.

The Alembic revisions in ``migrations/`` produce exactly this (a test compares them), statements are built from it.
"""

from __future__ import annotations

import re
from functools import cache

from sqlalchemy import MetaData

from firefly_memory.databases.sql.schema import names
from firefly_memory.databases.sql.schema.columns import PostgreSQLColumns, SQLiteColumns
from firefly_memory.facets import Facet, all_facets

REVISIONS = ("0001", "0002", "0003", "0004")
"""Every revision this version of the library knows, oldest first. A test keeps it in step with ``migrations/``."""

HEAD = REVISIONS[-1]
"""The revision this version of the library needs."""


ONLINE: frozenset[str] = frozenset()
"""The revisions among them that build an index ``CONCURRENTLY``, and so are no part of the others' transaction."""


def is_later_and_compatible(revision: str) -> bool:
    """Whether ``revision``, of a later version of the library, says that this version goes on working with it.

    ``0005_0004`` is revision 0005, and has only added to what a version that needs 0004 uses.
    """
    later = re.fullmatch(r"(\d{4})_(\d{4})", revision)
    return later is not None and later[2] <= HEAD[:4] < later[1]


VERSION_TABLE = "firefly_memory_version"
"""Alembic's table, under a name of our own: the application may keep its ``alembic_version`` in the same place."""

POSTGRESQL_SCHEMA = names.POSTGRESQL_SCHEMA


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
