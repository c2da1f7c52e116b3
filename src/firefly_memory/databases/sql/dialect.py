"""What the dialects of SQL say differently: the words that statements are built of, and nothing of any facet.

Compiled text is sent to the driver as it is. That makes an operation two to three times cheaper than executing the
Core construct. Documents and instants cross the border as text and integers, in types that every driver treats alike:
drivers and engines differ in how they read JSON, and asyncpg takes the first and last ``datetime`` for infinities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import Column, ColumnElement, Dialect, Engine, Select, Table, Text, bindparam, true
from sqlalchemy.sql.elements import CompilerElement
from sqlalchemy.types import TypeEngine

from firefly_memory.codec import Form
from firefly_memory.databases.notifications import Notifications
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.schema.columns import DOCUMENT, INSTANT, TEXTS, kind_of


class SQLDialect(ABC):
    """One dialect, said to one driver."""

    name: ClassVar[str]
    form: ClassVar[Form]
    begin: ClassVar[str]

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.driver: str = dialect.driver

    @classmethod
    def notifications(
        cls,
        engine: Engine,  # noqa: ARG003
        run: Callable[..., Awaitable[Any]],  # noqa: ARG003
        schema_name: str | None,  # noqa: ARG003
    ) -> Notifications | None:
        """What a database of this kind tells an event loop, through an asynchronous engine that is the caller's;
        ``run`` runs an operation there. ``None`` if it tells nothing."""
        return None

    @abstractmethod
    def by_code_point(self, column: ColumnElement[str]) -> ColumnElement[str]:
        """``column``, compared and sorted by code point."""

    @abstractmethod
    def document_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        """JSON text as a document column takes it."""

    @abstractmethod
    def document_out(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """A document column as JSON text."""

    @abstractmethod
    def words_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        """What :meth:`words` made, as a column of words takes it."""

    @abstractmethod
    def words_out(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """A column of words as text, with a space between them."""

    @abstractmethod
    def words_count(self, column: ColumnElement[Any]) -> ColumnElement[int]:
        """How many words a column of words has."""

    @abstractmethod
    def words(self, values: Sequence[str]) -> str:
        """A parameter for a column of words."""

    @abstractmethod
    def contains(self, column: ColumnElement[str], text: ColumnElement[str]) -> ColumnElement[bool]:
        """``column`` has the text somewhere, character for character."""

    @abstractmethod
    def instant_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        """What :meth:`instant` made, as an instant column takes it."""

    @abstractmethod
    def instant_out(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """An instant column as :meth:`read_instant` takes it."""

    @staticmethod
    @abstractmethod
    def read_instant(stored: Any) -> datetime:
        """The instant, in UTC, that :meth:`instant_out` gave."""

    @abstractmethod
    def is_one_of(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        """``column`` is among the texts of the parameter ``name``, which :meth:`texts` made."""

    def is_one_of_many(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        """:meth:`is_one_of` for hundreds of texts, which are not compared one by one."""
        return self.is_one_of(column, name)

    @property
    @abstractmethod
    def row_address(self) -> ColumnElement[Any]:
        """Where the row itself is, for the length of one statement: found without another look at an index. It says
        nothing on distributed tables."""

    @abstractmethod
    def is_in(self, column: ColumnElement[Any], rows: Select[Any]) -> ColumnElement[bool]:
        """``column`` is among the rows that a query finds before anything else is done."""

    def steer_to_order(self, column: ColumnElement[Any]) -> ColumnElement[bool]:
        """True for every row; leads a planner that would rather sort to the index that is ordered by ``column``."""
        return true()

    def fails_if_changed(self, row: Select[Any]) -> ColumnElement[bool]:
        """True; an error in a transaction that sees one and the same state from its start, if somebody has changed the
        row since. Where databases do not let such a transaction write any more anyway, it is only true."""
        return true()

    @abstractmethod
    def texts(self, values: Sequence[str]) -> Any:
        """A parameter for :meth:`is_one_of`."""

    def instant(self, moment: datetime) -> str:
        """A parameter for an instant."""
        return moment.isoformat(timespec="microseconds")

    def native_instant_in(self, name: str) -> ColumnElement[Any]:
        """The parameter ``name``, which :meth:`native_instant` made: for places in which no function may compute an
        instant of text, such as DO UPDATE on distributed tables of PostgreSQL."""
        return self.instant_in(bindparam(name, type_=Text))

    def native_instant(self, moment: datetime) -> Any:
        """A parameter for :meth:`native_instant_in`."""
        return self.instant(moment)

    @abstractmethod
    def insert(self, table: Table) -> Any:
        """The dialect's own insert, which knows conflicts."""

    def type_in(self, column: Column[Any]) -> TypeEngine[Any]:
        """The type a column's values cross the border in."""
        return column.type if kind_of(column) is None else Text()

    def value_in(self, column: Column[Any], value: ColumnElement[Any]) -> ColumnElement[Any]:
        """A value that has crossed the border, as ``column`` takes it."""
        kind = kind_of(column)
        if kind == DOCUMENT:
            return self.document_in(value)
        if kind == TEXTS:
            return self.words_in(value)
        return self.instant_in(value) if kind == INSTANT else value

    def value_out(self, column: Column[Any], of: ColumnElement[Any] | None = None) -> ColumnElement[Any]:
        """A column, as its values cross the border; ``of`` is its value in a part of a statement that has a name."""
        kind, value = kind_of(column), column if of is None else of
        if kind == DOCUMENT:
            return self.document_out(value).label(column.name)
        if kind == TEXTS:
            return self.words_out(value).label(column.name)
        return self.instant_out(value).label(column.name) if kind == INSTANT else value

    def compiled(self, construct: CompilerElement) -> Statement:
        """The text of a statement for this dialect and driver."""
        return Statement(construct, self._dialect)
