"""The statements as SQLite says them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import ColumnElement, Select, Table, Text, bindparam, func, literal_column, select
from sqlalchemy.dialects import sqlite

from firefly_memory.codec import TEXT, Form
from firefly_memory.conversations.log import Appended, Draft
from firefly_memory.databases.sql.session import Session
from firefly_memory.entries.record import Record
from firefly_memory.entries.sql.statements import Statements
from firefly_memory.errors import CorruptDataError
from firefly_memory.identifiers import original_name


class SQLiteStatements(Statements):
    dialect_name: ClassVar[str] = "sqlite"
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

    @property
    def row_address(self) -> ColumnElement[Any]:
        return literal_column("rowid")

    def is_in(self, column: ColumnElement[Any], rows: Select[Any]) -> ColumnElement[bool]:
        return column.in_(rows)

    @property
    def steer_to_order(self) -> ColumnElement[bool]:
        # After ANALYZE, SQLite takes keys for unique where most of them are, and would rather sort what it finds.
        return self._columns.created_at > literal_column("''")

    def texts(self, values: Sequence[str]) -> str:
        return json.dumps(values)

    def instant_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return text

    def instant_out(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        return column

    @staticmethod
    def read_instant(stored: Any) -> datetime:
        moment = datetime.fromisoformat(stored)
        if moment.tzinfo is None:
            raise ValueError(f"{stored!r} has no time zone")
        return moment.astimezone(UTC)

    def write_all(self, session: Session[Any], records: Sequence[Record], now: datetime) -> list[Record]:
        rows = [self._row_values(record, now) for record in records]
        if session.execute_many(self.upsert, rows) == len(rows):
            return []
        # The transaction is lost already; find out on whose account.
        return [record for record, row in zip(records, rows, strict=True) if session.execute(self.upsert, row) == 0]

    def write_group(self, session: Session[Any], records: Sequence[Record], now: datetime) -> list[Record]:
        with session.transaction():
            return [record for record in records if session.execute(self.upsert, self._row_values(record, now)) == 0]

    def write_turn(self, session: Session[Any], draft: Draft, expected: int | None) -> Appended | None:
        with session.transaction():
            return self._write_turn(session, draft, expected)

    def write_turns(self, session: Session[Any], drafts: Sequence[Draft]) -> list[Appended]:
        with session.transaction():
            written = [self._write_turn(session, draft, None) for draft in drafts]
        return [appended for appended in written if appended is not None]

    def _write_turn(self, session: Session[Any], draft: Draft, expected: int | None) -> Appended | None:
        values = {**self.conversations.values(*draft), "expected": expected}
        rows = session.fetch(self.conversations.take_number, values)
        if not rows:
            return None
        appended = Appended(*rows[0])
        if not all(isinstance(each, int) and each >= 0 for each in appended):
            # SQLite counts with anything, and goes on with a float where 64 bits are not enough.
            where = f"conversation {original_name(draft[0])!r}"
            raise CorruptDataError(
                "append_turn", where, "a count or the sum of its tokens is no whole number of 64 bits"
            )
        place = {"turn_id": appended.turns - 1, "tokens_before": appended.tokens - values["tokens"]}
        session.execute(self.conversations.insert_turn, {**values, **place})
        return appended

    def _row_values(self, record: Record, now: datetime) -> dict[str, Any]:
        return {**self.values(record), "now": self.instant(now)}

    def insert(self, table: Table) -> sqlite.Insert:
        return sqlite.insert(table)
