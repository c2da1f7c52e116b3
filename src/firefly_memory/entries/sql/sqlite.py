"""Entries in SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import ClassVar

from sqlalchemy import Integer, bindparam, delete, select

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.entries.record import Record
from firefly_memory.entries.sql.statements import EntryStatements
from firefly_memory.facets import Purged
from firefly_memory.tombstones.sql.refusal import are_accepted


class SQLiteEntryStatements(EntryStatements):
    rows_per_namespace: ClassVar[int] = 4  # no query goes over a network

    @cached_property
    def purge_some(self) -> Statement:
        """Deletes up to ``limit`` expired rows by their addresses."""
        c, row = self._columns, self.dialect.row_address
        some = select(row).select_from(self._entries).where(c.expires_at <= self._now).order_by(c.expires_at)
        doomed = self.dialect.is_in(row, some.limit(bindparam("limit", type_=Integer)))
        return self.compiled(delete(self._entries).where(doomed))

    def purge(self, session: Session, limit: int, now: datetime) -> Purged:
        deleted = session.execute(self.purge_some, {"limit": limit, "now": self.dialect.native_instant(now)})
        return Purged(deleted, more=deleted == limit)

    def write_all(self, session: Session, records: Sequence[Record], now: datetime) -> list[Record]:
        rows = [self.values_at(record, now) for record in records]
        if session.execute_many(self.upsert, rows) == len(rows):
            return []
        # The transaction is lost already; find out on whose account.
        return [record for record, row in zip(records, rows, strict=True) if session.execute(self.upsert, row) == 0]

    def write_group(
        self, session: Session, records: Sequence[Record], now: datetime, refusal: Values | None
    ) -> list[Record]:
        with session.transaction():  # nobody else writes until it ends, so one look for all is enough
            if refusal is not None and not are_accepted(session, refusal):
                return list(records)
            return [record for record in records if session.execute(self.upsert, self.values_at(record, now)) == 0]
