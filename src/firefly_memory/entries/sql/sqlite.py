"""Entries in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from firefly_memory.databases.sql.session import Session
from firefly_memory.entries.record import Record
from firefly_memory.entries.sql.statements import EntryStatements


class SQLiteEntryStatements(EntryStatements):
    def write_all(self, session: Session, records: Sequence[Record], now: datetime) -> list[Record]:
        rows = [self._row_values(record, now) for record in records]
        if session.execute_many(self.upsert, rows) == len(rows):
            return []
        # The transaction is lost already; find out on whose account.
        return [record for record, row in zip(records, rows, strict=True) if session.execute(self.upsert, row) == 0]

    def write_group(self, session: Session, records: Sequence[Record], now: datetime) -> list[Record]:
        with session.transaction():
            return [record for record in records if session.execute(self.upsert, self._row_values(record, now)) == 0]

    def _row_values(self, record: Record, now: datetime) -> dict[str, Any]:
        return {**self.values(record), "now": self.dialect.instant(now)}
