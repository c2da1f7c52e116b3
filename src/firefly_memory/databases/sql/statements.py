"""The statements of the facets, each compiled when it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from sqlalchemy import Table
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


class Statements:
    """The statements of all facets, on one dialect and schema."""

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        self.dialect = dialect
        self._schema_name = schema_name
        self._made: dict[type[FacetStatements], Any] = {}

    def of(self, facet: type[S]) -> S:
        made: S | None = self._made.get(facet)
        if made is None:
            of_dialect = facet.by_dialect.get(self.dialect.name)
            kind: type[S] = facet if of_dialect is None else load_name(of_dialect)
            made = self._made[facet] = kind(self.dialect, self._schema_name)
        return made
