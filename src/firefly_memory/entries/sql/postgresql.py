"""Entries in PostgreSQL: many rows as one array for each column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from sqlalchemy import Integer, bindparam, delete, false, func, literal_column, select

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.postgresql.arrays import array_in, array_text
from firefly_memory.databases.sql.postgresql.dialect import GROUP_LOCK_TIMEOUT, PostgreSQLDialect
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.entries.record import Record
from firefly_memory.entries.sql.statements import EntryStatements
from firefly_memory.facets import Purged
from firefly_memory.tombstones.sql.statements import none_erased

_LAST = datetime.max.replace(tzinfo=UTC)

_ROWS_PER_STATEMENT = 5_000
_CHARACTERS_PER_STATEMENT = 4_000_000
"""Unless a single row has more: an array goes as one text, which has a limit of 1 GB, escapes among them."""


class PostgreSQLEntryStatements(EntryStatements):
    dialect: PostgreSQLDialect

    @cached_property
    def first_to_stay(self) -> Statement:
        """When the row expired that is one too many for a batch of ``limit``."""
        c = self._columns
        expired = select(self.dialect.value_out(c.expires_at)).where(c.expires_at <= self._now)
        one_too_many = expired.order_by(c.expires_at).offset(bindparam("limit", type_=Integer))
        return self.compiled(one_too_many.limit(literal_column("1")))

    @cached_property
    def delete_before(self) -> Statement:
        """Deletes what expired before a moment: by index alone, in half the time of :attr:`delete_expired`."""
        expires_at = self._columns.expires_at
        before = expires_at < self.dialect.native_instant_in("before")
        return self.compiled(delete(self._entries).where(expires_at <= self._now, before))

    @cached_property
    def some_expired(self) -> Statement:
        """The ids of up to ``limit`` expired rows. No addresses of rows: on distributed tables they say too little."""
        c = self._columns
        some = select(c.entry_id).where(c.expires_at <= self._now).order_by(c.expires_at)
        return self.compiled(some.limit(bindparam("limit", type_=Integer)))

    @cached_property
    def delete_expired(self) -> Statement:
        """Deletes those of some ids. Somebody may have put off an expiry meanwhile."""
        some = self.dialect.is_one_of(self._columns.entry_id, "entry_ids")
        # Said in a way no index is used for, so that the index of the ids is.
        still_expired = (self._columns.expires_at > self._now).is_(false())
        return self.compiled(delete(self._entries).where(some, still_expired))

    def purge(self, session: Session, limit: int, now: datetime) -> Purged:
        values = {"limit": limit, "now": self.dialect.native_instant(now)}
        rows = session.fetch(self.first_to_stay, values)
        first_to_stay = rows[0][0] if rows else _LAST
        if first_to_stay is not None:  # a moment that Python has no value for
            before = self.dialect.native_instant(self.dialect.read_instant(first_to_stay))
            deleted = session.execute(self.delete_before, {**values, "before": before})
            if deleted or not rows:
                return Purged(deleted, more=bool(rows))  # more: perhaps all that expired at one and the same moment
        return self._purge_by_id(session, values)  # that, or nothing

    def _purge_by_id(self, session: Session, values: dict[str, Any]) -> Purged:
        ids = [row[0] for row in session.fetch(self.some_expired, values)]
        if not ids:
            return Purged(0, more=False)
        deleted = session.execute(self.delete_expired, {**values, "entry_ids": self.dialect.texts(ids)})
        return Purged(deleted, more=len(ids) == values["limit"])

    @cached_property
    def upsert_many(self) -> Statement:
        """:attr:`upsert` for rows given as one array a column; returns the ids it wrote."""
        return self.compiled(self._upsert_arrays(lock_timeout=None))

    @cached_property
    def upsert_group(self) -> Statement:
        """The same, but giving up soon where a row is locked: the callers of a group have nothing to do with it."""
        return self.compiled(self._upsert_arrays(self.dialect.lock_timeout()))

    @cached_property
    def upsert_group_unless_erased(self) -> Statement:
        """The same, if none of the namespaces is refused."""
        return self.compiled(self._upsert_arrays(self.dialect.lock_timeout(), none_erased(self)))

    def _upsert_arrays(self, lock_timeout: Any, *conditions: Any) -> Any:
        columns = list(self._entries.columns)
        arrays = [array_in(column.name, self.dialect.type_in(column)) for column in columns]
        rows = func.unnest(*arrays).table_valued(*[column.name for column in columns]).render_derived(name="rows")
        values = [self.dialect.value_in(column, rows.c[column.name]) for column in columns]
        source = (
            select(*values).select_from(rows)
            if lock_timeout is None
            else select(*values).select_from(rows, lock_timeout)
        )
        insert = self.dialect.insert(self._entries).from_select(
            [column.name for column in columns], source.where(*conditions)
        )
        return self._or_replace(insert).returning(self._columns.entry_id)

    def write_all(self, session: Session, records: Sequence[Record], now: datetime) -> list[Record]:
        if self.dialect.driver == "psycopg":
            # It writes arrays slowly, but sends many rows in one go, and counts them.
            rows = [self.values_at(record, now) for record in _in_order(records)]
            if session.execute_many(self.upsert, rows) == len(rows):
                return []
        refused: list[Record] = []
        for part in _parts(records):
            refused += self._refused(part, session.fetch(self.upsert_many, self._arrays(part, now)))
        return refused

    def write_group(
        self, session: Session, records: Sequence[Record], now: datetime, refusal: Values | None
    ) -> list[Record]:
        upsert = self.upsert_group if refusal is None else self.upsert_group_unless_erased
        values = {**self._arrays(records, now), "lock_timeout": GROUP_LOCK_TIMEOUT, **(refusal or {})}
        with session.writing():
            return self._refused(records, session.fetch(upsert, values))

    def _arrays(self, records: Sequence[Record], now: datetime) -> dict[str, Any]:
        rows = [self.values(record) for record in _in_order(records)]
        return {name: array_text(row[name] for row in rows) for name in Record._fields} | {
            "now": self.dialect.native_instant(now)
        }

    def _refused(self, records: Sequence[Record], written: Sequence[Sequence[Any]]) -> list[Record]:
        if len(written) == len(records):
            return []
        ids = {row[0] for row in written}
        return [record for record in records if record.entry_id not in ids]


def _in_order(records: Iterable[Record]) -> list[Record]:
    """By id, so that two processes that write the same rows lock them in the same order."""
    return sorted(records)


def _parts(records: Iterable[Record]) -> Iterator[list[Record]]:
    """What one statement can take each."""
    part: list[Record] = []
    size = 0
    for record in _in_order(records):
        characters = len(record.content) + len(record.metadata)
        if part and (len(part) == _ROWS_PER_STATEMENT or size + characters > _CHARACTERS_PER_STATEMENT):
            yield part
            part, size = [], 0
        part.append(record)
        size += characters
    if part:
        yield part
