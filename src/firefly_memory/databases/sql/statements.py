"""The statements of the facets, each compiled when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeVar

from sqlalchemy import Dialect, Table
from sqlalchemy.sql.elements import CompilerElement

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.schema.metadata import metadata
from firefly_memory.facets import load_name

S = TypeVar("S", bound="FacetStatements")


class FacetStatements:
    """The statements of one facet, as values: built with Core from its tables, in the words of a dialect.

    Where dialects need more than other words, ``by_dialect`` has a subclass for each, as a dotted name.
    """

    by_dialect: ClassVar[Mapping[str, str]] = {}

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        self.dialect = dialect
        self._schema_name = schema_name

    def in_schema(self, table: str) -> Table:
        """A table of the facet."""
        name = table if self._schema_name is None else f"{self._schema_name}.{table}"
        return metadata(self._schema_name).tables[name]

    def compiled(self, construct: CompilerElement) -> Statement:
        return self.dialect.compiled(construct)


class OfFacet(Protocol):
    """:meth:`Statements.of`, where only that is kept."""

    def __call__(self, facet: type[S], /) -> S: ...


class Statements:
    """The statements of all facets, on one dialect and schema, and what facets have read of one database and keep."""

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        self.dialect = dialect
        self._schema_name = schema_name
        self._made: dict[type[FacetStatements], Any] = {}
        self.kept: dict[str, Any] = {}

    def of(self, facet: type[S]) -> S:
        made: S | None = self._made.get(facet)
        if made is None:
            of_dialect = facet.by_dialect.get(self.dialect.name)
            kind: type[S] = facet if of_dialect is None else load_name(of_dialect)
            made = self._made[facet] = kind(self.dialect, self._schema_name)
        return made

    def for_a_database(self) -> Statements:
        """The same statements; nothing is kept yet."""
        statements = Statements(self.dialect, self._schema_name)
        statements._made = self._made
        return statements


_KEPT = 64
"""Sets of statements: one for each driver and schema that a process uses, within reason."""


def statements_of(kind: type[SQLDialect], dialect: Dialect, schema_name: str | None) -> Statements:
    """For an engine with this ``dialect``. All engines of one driver have the same statements, so that a new store,
    another event loop or the other mode need not compile them again, which takes longer than to run them. A dialect
    that is not SQLAlchemy's may say them otherwise, and has its own."""
    driver: Any = type(dialect)
    if not driver.__module__.startswith("sqlalchemy."):
        return Statements(kind(dialect), schema_name)
    return _statements_of(kind, driver, dialect.paramstyle, schema_name).for_a_database()


@lru_cache(_KEPT)
def _statements_of(
    kind: type[SQLDialect], driver: Callable[..., Dialect], paramstyle: str, schema_name: str | None
) -> Statements:
    return Statements(kind(driver(paramstyle=paramstyle)), schema_name)
