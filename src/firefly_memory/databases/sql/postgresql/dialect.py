"""The statements as PostgreSQL says them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar

from sqlalchemy import (
    ColumnElement,
    DateTime,
    Dialect,
    Integer,
    Select,
    Table,
    Text,
    any_,
    bindparam,
    case,
    cast,
    delete,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects import postgresql

from firefly_memory.codec import JSONB, Form
from firefly_memory.conversations.log import Appended, Draft
from firefly_memory.conversations.sql.postgresql_turn_groups import GIVEN, append_group
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.postgresql.arrays import array_in, array_text
from firefly_memory.databases.sql.postgresql.exact import exact
from firefly_memory.databases.sql.session import Session
from firefly_memory.entries.record import Purged, Record
from firefly_memory.entries.sql.statements import Statements

GROUP_PATIENCE = "100ms"
"""How long a group of saves waits for a row that somebody has locked, before each save tries for itself."""

_ROWS_PER_STATEMENT = 5_000
_CHARACTERS_PER_STATEMENT = 4_000_000
"""Unless a single row has more: an array goes as one text, which has a limit of 1 GB, escapes among them."""

_FIRST, _LAST = "0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"


class PostgreSQLStatements(Statements):
    dialect_name: ClassVar[str] = "postgresql"
    form: ClassVar[Form] = JSONB
    begin: ClassVar[str] = "BEGIN"

    def __init__(self, dialect: Dialect, schema_name: str | None) -> None:
        super().__init__(exact(dialect), schema_name)

    def by_code_point(self, column: ColumnElement[str]) -> ColumnElement[str]:
        return column.collate("C")

    def document_in(self, text: ColumnElement[str]) -> ColumnElement[Any]:
        return cast(text, postgresql.JSONB)

    def document_out(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return cast(column, Text)

    def is_one_of(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        return column == any_(array_in(name, Text()))

    @property
    def row_address(self) -> ColumnElement[Any]:
        return literal_column("ctid")

    def is_in(self, column: ColumnElement[Any], rows: Select[Any]) -> ColumnElement[bool]:
        return column == any_(func.array(rows.scalar_subquery()))  # an array, which leads straight to the rows

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

    @staticmethod
    def read_instant(stored: Any) -> datetime:
        if not isinstance(stored, datetime):
            raise TypeError("an instant is infinite, or beyond the years 1 to 9999")
        moment: datetime = stored if stored.tzinfo is not None else stored.replace(tzinfo=UTC)
        return moment

    def insert(self, table: Table) -> postgresql.Insert:
        return postgresql.insert(table)

    @cached_property
    def purge_oldest(self) -> Statement:
        """Deletes what expired before the row that is one too many: by index alone, in half the time of
        :attr:`purge_some`."""
        c = self._columns
        expired = c.expires_at <= self._now
        limit = bindparam("limit", type_=Integer)
        one_too_many = (
            select(c.expires_at).where(expired).order_by(c.expires_at).offset(limit).limit(literal_column("1"))
        )
        never = cast(literal_column("'infinity'"), DateTime(timezone=True))
        oldest = c.expires_at < func.coalesce(one_too_many.scalar_subquery(), never)
        return self.compiled(delete(self._entries).where(expired, oldest))

    def purge(self, session: Session[Any], limit: int, now: datetime) -> Purged:
        deleted = session.execute(self.purge_oldest, {"limit": limit, "now": self.instant(now)})
        if deleted:
            return Purged(deleted, more=True)  # perhaps only what expired at one and the same moment
        return super().purge(session, limit, now)  # that, or nothing

    @cached_property
    def upsert_many(self) -> Statement:
        """:attr:`upsert` for rows given as one array a column; returns the ids it wrote."""
        return self.compiled(self._upsert_arrays(patience=None))

    @cached_property
    def upsert_group(self) -> Statement:
        """The same, but giving up soon where a row is locked: the callers of a group have nothing to do with it."""
        return self.compiled(self._upsert_arrays(self._patience))

    @cached_property
    def append_group(self) -> Statement:
        """Turns of several callers, with the same patience."""
        return self.compiled(append_group(self, self._patience))

    @property
    def _patience(self) -> Any:
        # Set for the statement's own transaction, in the same round trip; volatile, so evaluated before any row.
        return select(func.pg_catalog.set_config("lock_timeout", bindparam("patience", type_=Text), true())).cte(
            "patience"
        )

    def _upsert_arrays(self, patience: Any) -> Any:
        columns = list(self._entries.columns)
        arrays = [array_in(column.name, self.type_in(column)) for column in columns]
        rows = func.unnest(*arrays).table_valued(*[column.name for column in columns]).render_derived(name="rows")
        values = [self.value_in(column.name, rows.c[column.name]) for column in columns]
        source = select(*values).select_from(rows) if patience is None else select(*values).select_from(rows, patience)
        insert = self.insert(self._entries).from_select([column.name for column in columns], source)
        return self._or_replace(insert).returning(self._columns.entry_id)

    def write_all(self, session: Session[Any], records: Sequence[Record], now: datetime) -> list[Record]:
        if self._dialect.driver == "psycopg":
            # It writes arrays slowly, but sends many rows in one go, and counts them.
            rows = [{**self.values(record), "now": self.instant(now)} for record in _in_order(records)]
            if session.execute_many(self.upsert, rows) == len(rows):
                return []
        refused: list[Record] = []
        for part in _parts(records):
            refused += self._refused(part, session.fetch(self.upsert_many, self._arrays(part, now)))
        return refused

    def write_group(self, session: Session[Any], records: Sequence[Record], now: datetime) -> list[Record]:
        values = self._arrays(records, now) | {"patience": GROUP_PATIENCE}
        with session.writing():
            return self._refused(records, session.fetch(self.upsert_group, values))

    def write_turn(self, session: Session[Any], draft: Draft, expected: int | None) -> Appended | None:
        values = {**self.conversations.values(*draft), "expected": expected}
        with session.attempt():
            rows = session.fetch(self.conversations.append, values)
        return Appended(*rows[0]) if rows else None

    def write_turns(self, session: Session[Any], drafts: Sequence[Draft]) -> list[Appended]:
        rows = [self.conversations.values(*draft) for draft in drafts]
        values = {name: array_text(row[name] for row in rows) for name in GIVEN} | {"patience": GROUP_PATIENCE}
        with session.writing():
            return [Appended(*row) for row in session.fetch(self.append_group, values)]

    def _arrays(self, records: Sequence[Record], now: datetime) -> dict[str, Any]:
        rows = [self.values(record) for record in _in_order(records)]
        return {name: array_text(row[name] for row in rows) for name in Record._fields} | {"now": self.instant(now)}

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
