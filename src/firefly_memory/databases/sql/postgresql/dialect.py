"""SQL as PostgreSQL says it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import (
    ColumnElement,
    DateTime,
    Dialect,
    Engine,
    Integer,
    Select,
    Table,
    Text,
    any_,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects import postgresql

from firefly_memory.codec import JSONB, Form
from firefly_memory.databases.notifications import Notifications
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.postgresql.arrays import array_in, array_text
from firefly_memory.databases.sql.postgresql.exact import exact
from firefly_memory.databases.sql.postgresql.notifications import notifications_of

GROUP_LOCK_TIMEOUT = "100ms"
"""How long the writes of a group wait for a row that somebody has locked, before each tries for itself."""

_FIRST, _LAST = "0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"


class PostgreSQLDialect(SQLDialect):
    name: ClassVar[str] = "postgresql"
    form: ClassVar[Form] = JSONB
    begin: ClassVar[str] = "BEGIN"

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(exact(dialect))

    @classmethod
    def notifications(
        cls, engine: Engine, run: Callable[..., Awaitable[Any]], schema_name: str | None
    ) -> Notifications | None:
        # The engine has another pool after dispose().
        return notifications_of(lambda: engine.pool.recreate(), run, schema_name)  # noqa: PLW0108

    def by_code_point(self, column: ColumnElement[str]) -> ColumnElement[str]:
        return column.collate("C")

    def document_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return cast(text, postgresql.JSONB)

    def document_out(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return cast(column, Text)

    def words_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return cast(text, postgresql.ARRAY(Text))

    def words_out(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return func.pg_catalog.array_to_string(column, literal_column("' '"), type_=Text)

    def words_count(self, column: ColumnElement[Any]) -> ColumnElement[int]:
        return func.pg_catalog.cardinality(column, type_=Integer)

    def words(self, values: Sequence[str]) -> str:
        return array_text(values)

    def contains(self, column: ColumnElement[str], text: ColumnElement[str]) -> ColumnElement[bool]:
        # LIKE, because an index of trigrams knows it; its own signs are taken for themselves.
        for sign in ("\\", "%", "_"):
            text = func.pg_catalog.replace(text, literal(sign, Text), literal("\\" + sign, Text), type_=Text)
        any_text = literal("%", Text)
        return column.like(any_text.concat(text).concat(any_text))

    def is_one_of(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        return column == any_(array_in(name, Text()))

    def is_one_of_many(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        return column.in_(select(func.pg_catalog.unnest(array_in(name, Text()))))

    @property
    def row_address(self) -> ColumnElement[Any]:
        return literal_column("ctid")

    def is_in(self, column: ColumnElement[Any], rows: Select[Any]) -> ColumnElement[bool]:
        return column == any_(func.array(rows.scalar_subquery()))  # an array, which leads straight to the rows

    def fails_if_changed(self, row: Select[Any]) -> ColumnElement[bool]:
        # Locks nothing where each statement sees the newest state: the server looks at the level before any row.
        level = func.pg_catalog.current_setting(literal_column("'transaction_isolation'"))
        locked = row.where(level != literal_column("'read committed'")).with_for_update(read=True)
        return locked.scalar_subquery().is_distinct_from(literal_column("''"))

    def texts(self, values: Sequence[str]) -> str:
        return array_text(values)

    def instant_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return cast(text, DateTime(timezone=True))

    def instant_out(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        # Somebody may have written 'infinity' or the year 12000 by hand, which Python cannot say: no expiry, then.
        first, last = (cast(literal_column(f"'{moment}'"), DateTime(timezone=True)) for moment in (_FIRST, _LAST))
        known = column.between(first, last)
        if self._dialect.driver == "asyncpg":
            return case((known, column))
        # Others give it in the session's zone, which leads out of Python's range near the first and last year.
        return case((known, func.pg_catalog.timezone("UTC", column)))

    def native_instant_in(self, name: str) -> ColumnElement[Any]:
        instant = DateTime(timezone=True)
        return cast(bindparam(name, type_=instant), instant)

    def native_instant(self, moment: datetime) -> Any:
        # Others send text without a type, which the server reads as what the statement says.
        return moment if self.driver == "asyncpg" else self.instant(moment)

    @staticmethod
    def read_instant(stored: Any) -> datetime:
        if not isinstance(stored, datetime):
            raise TypeError("an instant is infinite, or beyond the years 1 to 9999")
        moment: datetime = stored if stored.tzinfo is not None else stored.replace(tzinfo=UTC)
        return moment

    def insert(self, table: Table) -> postgresql.Insert:
        return postgresql.insert(table)

    def lock_timeout(self) -> Any:
        """For the FROM of a query: sets how long its transaction waits for a lock, from the parameter ``lock_timeout``.
        In the same round trip; volatile, and so evaluated before any row."""
        value = bindparam("lock_timeout", type_=Text)
        return select(func.pg_catalog.set_config("lock_timeout", value, true())).cte("lock_timeout")
