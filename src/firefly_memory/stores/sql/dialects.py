"""Where PostgreSQL and SQLite say the same thing differently."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar

from sqlalchemy import ARRAY, ColumnElement, Text, any_, bindparam, cast, func, literal_column, select
from sqlalchemy.dialects import postgresql, sqlite

from firefly_memory.codec import JSONB, TEXT, Form
from firefly_memory.errors import CorruptDataError
from firefly_memory.stores.records import Record
from firefly_memory.stores.sql.session import Session
from firefly_memory.stores.sql.statements import Statement, Statements

GROUP_PATIENCE = "100ms"
"""How long a group of saves waits for a row that somebody has locked, before each save tries for itself."""

_ROWS_PER_STATEMENT = 5_000


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

    def instant(self, moment: datetime) -> datetime:
        return moment

    def record(self, row: Sequence[Any]) -> Record:
        return Record._make(row)

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
        arrays = [
            bindparam(column.name, type_=ARRAY(Text if column.name in ("content", "metadata") else column.type))
            for column in columns
        ]
        rows = func.unnest(*arrays).table_valued(*[column.name for column in columns]).render_derived(name="rows")
        values = [
            self.document_in(rows.c[column.name]) if column.name in ("content", "metadata") else rows.c[column.name]
            for column in columns
        ]
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
        columns = zip(*sorted(records), strict=True)
        arrays: dict[str, Any] = {name: list(column) for name, column in zip(Record._fields, columns, strict=True)}
        return arrays | {"now": now}

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

    def instant(self, moment: datetime) -> str:
        return moment.isoformat(timespec="microseconds")

    def record(self, row: Sequence[Any]) -> Record:
        entry_id, namespace, scope, key, content, metadata, created_at, expires_at, importance = row
        try:
            return Record(
                entry_id,
                namespace,
                scope,
                key,
                content,
                metadata,
                _instant(created_at),
                None if expires_at is None else _instant(expires_at),
                importance,
            )
        except (TypeError, ValueError) as exc:
            raise CorruptDataError("load", f"entry {entry_id!r} in namespace {namespace!r}", str(exc)) from exc

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


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment.astimezone(UTC)
