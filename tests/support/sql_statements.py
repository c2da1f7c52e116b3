"""The statements of a facet, as a store compiles them for an engine that somebody passes in."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import TypeVar

from sqlalchemy import create_engine

from firefly_memory.databases.sql.postgresql.dialect import PostgreSQLDialect
from firefly_memory.databases.sql.sqlite.dialect import SQLiteDialect
from firefly_memory.databases.sql.statements import FacetStatements, Statements
from firefly_memory.facets import Facet

S = TypeVar("S", bound=FacetStatements)


def on_postgresql(facet: type[S], schema_name: str) -> S:
    return Statements(PostgreSQLDialect(create_engine("postgresql+psycopg://").dialect), schema_name).of(facet)


def on_sqlite(facet: type[S]) -> S:
    return Statements(SQLiteDialect(create_engine("sqlite://").dialect), None).of(facet)


def statements_of_facet(facet: Facet) -> Iterator[type[FacetStatements]]:
    """The classes of statements in the package of a facet."""
    package = import_module(str(getattr(facet.storage, "tables")).partition(":")[0].rpartition(".")[0])  # noqa: B009
    modules = [import_module(f"{package.__name__}.{each.name}") for each in pkgutil.iter_modules(package.__path__)]
    for module in modules:
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, FacetStatements) and each.__module__ == module.__name__:
                yield each
