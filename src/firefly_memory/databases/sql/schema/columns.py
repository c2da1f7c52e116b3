"""Columns as SQLite and PostgreSQL have them: documents and instants differ, and so do conditions and collations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from sqlalchemy import BigInteger, Column, ColumnElement, DateTime, Identity, Index, Integer, Table, Text
from sqlalchemy.types import TypeEngine

DOCUMENT, INSTANT, TEXTS = "document", "instant", "texts"

_KIND = "firefly_memory.kind"

ROWS_OF_ITS_REVISION = "firefly_memory.rows_of_its_revision"
"""In the info of a table: how many rows its revision makes. They are nobody's data."""

GUARDED = {"firefly_memory.guarded": True}
"""``info`` of each table whose writes look for tombstones: erasing a person waits for the writes to it under way."""


def is_guarded(table: Table) -> bool:
    return table.info.items() >= GUARDED.items()


def kind_of(column: Column[Any]) -> str | None:
    """:data:`DOCUMENT`, :data:`INSTANT` or :data:`TEXTS`, whose values cross the border as text; ``None`` for all
    others."""
    return column.info.get(_KIND)


class Columns(ABC):
    """What a facet builds its tables of."""

    document_type: TypeEngine[Any]
    instant_type: TypeEngine[Any]
    now: str
    """SQL for the present moment, as a default."""

    def document(self, name: str, **options: Any) -> Column[Any]:
        return Column(name, self.document_type, info={_KIND: DOCUMENT}, **options)

    def instant(self, name: str, **options: Any) -> Column[Any]:
        return Column(name, self.instant_type, info={_KIND: INSTANT}, **options)

    @abstractmethod
    def texts(self, name: str, **options: Any) -> Column[Any]:
        """A column of several words, none of which has a space."""

    @abstractmethod
    def texts_index(self, name: str, column: Column[Any]) -> None:
        """Define an index that finds the rows with a word of such a column, unless a full-text table does."""

    @abstractmethod
    def growing_key(self, name: str) -> Column[Any]:
        """A primary key of whole numbers that the database gives, as full-text tables need it. Roles need no right on
        it beyond those on the table."""

    @abstractmethod
    def only(self, condition: ColumnElement[bool]) -> dict[str, Any]:
        """For an index: of the rows that meet ``condition``."""

    @abstractmethod
    def by_code_point(self, *columns: str) -> dict[str, Any]:
        """For an index: these of its columns are sorted by code point."""


class SQLiteColumns(Columns):
    """SQLite has neither JSON nor instants, but text keeps both. A column declared JSON would get numeric affinity,
    which turns ``-0.0`` and integers beyond 64 bits into other numbers. ISO 8601 in UTC sorts by time."""

    document_type = Text()
    instant_type = Text()
    now = "(strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))"

    def texts(self, name: str, **options: Any) -> Column[Any]:
        return Column(name, Text, info={_KIND: TEXTS}, **options)

    def texts_index(self, name: str, column: Column[Any]) -> None:
        """FTS5 finds them."""

    def growing_key(self, name: str) -> Column[Any]:
        return Column(name, Integer, primary_key=True)

    def only(self, condition: ColumnElement[bool]) -> dict[str, Any]:
        return {"sqlite_where": condition}

    def by_code_point(self, *columns: str) -> dict[str, Any]:
        return {}  # SQLite's own way


class PostgreSQLColumns(Columns):
    """The documented types. Columns have the database's own collation, which differs from server to server; indexes
    that serve an order are built, and their statements written, by code point, so that order is the same everywhere."""

    instant_type = DateTime(timezone=True)
    now = "now()"

    @property
    def document_type(self) -> TypeEngine[Any]:  # type: ignore[override]
        from sqlalchemy.dialects.postgresql import JSONB  # slow to load, and not needed for SQLite

        return JSONB()

    def texts(self, name: str, **options: Any) -> Column[Any]:
        from sqlalchemy.dialects.postgresql import ARRAY

        return Column(name, ARRAY(Text), info={_KIND: TEXTS}, **options)

    def texts_index(self, name: str, column: Column[Any]) -> None:
        # At once, and not in a list that each search would have to read.
        Index(name, column, postgresql_using="gin", postgresql_with={"fastupdate": "off"})

    def growing_key(self, name: str) -> Column[Any]:
        return Column(name, BigInteger, Identity(), primary_key=True)

    def only(self, condition: ColumnElement[bool]) -> dict[str, Any]:
        return {"postgresql_where": condition}

    def by_code_point(self, *columns: str) -> dict[str, Any]:
        return {"postgresql_ops": dict.fromkeys(columns, 'COLLATE "C"')}
