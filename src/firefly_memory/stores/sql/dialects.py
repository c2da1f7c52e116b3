"""Where PostgreSQL and SQLite say the same thing differently."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    DateTime,
    Text,
    any_,
    bindparam,
    case,
    cast,
    extract,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from firefly_memory.codec import JSONB, TEXT, Form
from firefly_memory.stores.records import Record
from firefly_memory.stores.sql.session import Session
from firefly_memory.stores.sql.statements import Statement, Statements

GROUP_PATIENCE = "100ms"
"""How long a group of saves waits for a row that somebody has locked, before each save tries for itself."""

_ROWS_PER_STATEMENT = 5_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PostgreSQLStatements(Statements):
    form: ClassVar[Form] = JSONB
    begin: ClassVar[str] = "BEGIN"

    def by_code_point(self, column: ColumnElement[str]) -> ColumnElement[str]:
        return column.collate("C")

    def document_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return cast(text, postgresql.JSONB)

    def document_out(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return cast(column, Text)

    def is_one_of(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        return column == any_(bindparam(name, type_=ARRAY(Text)))

    def texts(self, values: Sequence[str]) -> list[str]:
        return list(values)

    def instant_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return cast(text, DateTime(timezone=True))

    def instant_out(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        # Microseconds since 1970. Somebody may have written 'infinity' by hand: no expiry, then.
        microseconds = cast(extract("epoch", column) * literal_column("1000000"), BigInteger)
        return case((func.isfinite(column), microseconds))

    def read_instant(self, stored: Any) -> datetime:
        return _EPOCH + timedelta(microseconds=stored)

    def _insert(self) -> postgresql.Insert:
        return postgresql.insert(self._entries)

    @cached_property
    def upsert_many(self) -> Statement:
        """:attr:`upsert` for rows given as one array a column; returns the ids it wrote."""
        return self._compiled(self._upsert_arrays(patience=None))

    @cached_property
    def upsert_group(self) -> Statement:
        """The same, but giving up soon where a row is locked: the callers of a group have nothing to do with it."""
        # Set for the statement's own transaction, in the same round trip; volatile, so evaluated before any row.
        patience = select(func.set_config("lock_timeout", bindparam("patience", type_=Text), True)).cte("patience")
        return self._compiled(self._upsert_arrays(patience))

    def _upsert_arrays(self, patience: Any) -> Any:
        columns = list(self._entries.columns)
        arrays = [bindparam(column.name, type_=ARRAY(self.type_in(column))) for column in columns]
        rows = func.unnest(*arrays).table_valued(*[column.name for column in columns]).render_derived(name="rows")
        values = [self.value_in(column.name, rows.c[column.name]) for column in columns]
        source = select(*values).select_from(rows) if patience is None else select(*values).select_from(rows, patience)
        insert = self._insert().from_select([column.name for column in columns], source)
        return self._or_replace(insert).returning(self._columns.entry_id)

    def write_all(self, session: Session[Any], records: Sequence[Record], now: datetime) -> list[Record]:
        refused: list[Record] = []
        for start in range(0, len(records), _ROWS_PER_STATEMENT):
            part = records[start : start + _ROWS_PER_STATEMENT]
            refused += self._refused(part, session.fetch(self.upsert_many, self._arrays(part, now)))
        return refused

    def write_group(self, session: Session[Any], records: Sequence[Record], now: datetime) -> list[Record]:
        values = self._arrays(records, now) | {"patience": GROUP_PATIENCE}
        return self._refused(records, session.fetch(self.upsert_group, values))

    def _arrays(self, records: Sequence[Record], now: datetime) -> dict[str, Any]:
        # By id, so that two processes that write the same rows lock them in the same order.
        rows = [self.values(record) for record in sorted(records)]
        return {name: [row[name] for row in rows] for name in Record._fields} | {"now": self.instant(now)}

    def _refused(self, records: Sequence[Record], written: Sequence[Sequence[Any]]) -> list[Record]:
        if len(written) == len(records):
            return []
        ids = {row[0] for row in written}
        return [record for record in records if record.entry_id not in ids]


class SQLiteStatements(Statements):
    form: ClassVar[Form] = TEXT
    begin: ClassVar[str] = "BEGIN IMMEDIATE"

    def by_code_point(self, column: ColumnElement[str]) -> ColumnElement[str]:
        return column  # SQLite's own way

    def document_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return text

    def document_out(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return column

    def is_one_of(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        members = func.json_each(bindparam(name, type_=Text)).table_valued("value")
        return column.in_(select(members.c.value))

    def texts(self, values: Sequence[str]) -> str:
        return json.dumps(values)

    def instant_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return text

    def instant_out(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return column

    def read_instant(self, stored: Any) -> datetime:
        moment = datetime.fromisoformat(stored)
        if moment.tzinfo is None:
            raise ValueError(f"{stored!r} has no time zone")
        return moment.astimezone(UTC)

    def write_all(self, session: Session[Any], records: Sequence[Record], now: datetime) -> list[Record]:
        rows = [self._row(record, now) for record in records]
        if session.execute_many(self.upsert, rows) == len(rows):
            return []
        # The transaction is lost already; find out on whose account.
        return [record for record, row in zip(records, rows, strict=True) if session.execute(self.upsert, row) == 0]

    def write_group(self, session: Session[Any], records: Sequence[Record], now: datetime) -> list[Record]:
        with session.transaction():
            return [record for record in records if session.execute(self.upsert, self._row(record, now)) == 0]

    def _row(self, record: Record, now: datetime) -> dict[str, Any]:
        return {**self.values(record), "now": self.instant(now)}

    def _insert(self) -> sqlite.Insert:
        return sqlite.insert(self._entries)
