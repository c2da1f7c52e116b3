"""The statements of entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Integer,
    Select,
    Text,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.schema.columns import DOCUMENT, kind_of
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.entries.record import Record
from firefly_memory.facets import Purged
from firefly_memory.tombstones.sql.statements import not_erased

if TYPE_CHECKING:
    from firefly_memory.databases.sql.session import Session, Values

_REPLACED = ("scope", "key", "content", "metadata", "expires_at", "importance")
"""What saving an entry again replaces."""


class EntryStatements(FacetStatements):
    """What both dialects have in common."""

    by_dialect: ClassVar[Mapping[str, str]] = {
        "sqlite": "firefly_memory.entries.sql.sqlite:SQLiteEntryStatements",
        "postgresql": "firefly_memory.entries.sql.postgresql:PostgreSQLEntryStatements",
    }

    rows_per_namespace: ClassVar[int] = 64
    """How many rows are worth reading to find another namespace: they take less time than another query."""

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self._entries = self.in_schema("memory_entries")
        self._columns = self._entries.c

    def write_all(self, session: Session, records: Sequence[Record], now: datetime) -> list[Record]:
        """:attr:`upsert` for many rows inside a transaction; the records that were refused."""
        raise NotImplementedError

    def write_group(
        self, session: Session, records: Sequence[Record], now: datetime, refusal: Values | None
    ) -> list[Record]:
        """The same for rows of different callers, durable in one go, each for itself. With ``refusal``, none of them is
        written if one of their namespaces is refused."""
        raise NotImplementedError

    def purge(self, session: Session, limit: int, now: datetime) -> Purged:
        """Delete up to ``limit`` expired rows."""
        raise NotImplementedError

    def values(self, record: Record) -> dict[str, Any]:
        """The parameters for one row."""
        values = record._asdict()
        values["created_at"] = self.dialect.instant(record.created_at)
        if record.expires_at is not None:
            values["expires_at"] = self.dialect.instant(record.expires_at)
        return values

    def values_at(self, record: Record, now: datetime) -> dict[str, Any]:
        """The parameters for one row, and for the present moment."""
        return {**self.values(record), "now": self.dialect.native_instant(now)}

    @cached_property
    def upsert(self) -> Statement:
        """Insert one row, or replace it; touches no row if a live one of another namespace has the id."""
        return self.compiled(self._or_replace(self.dialect.insert(self._entries).values(self._new_row())))

    @cached_property
    def upsert_unless_erased(self) -> Statement:
        """The same; touches no row either if the namespace is refused."""
        return self.compiled(self._or_replace(self._insert_unless_erased))

    @cached_property
    def insert_if_absent(self) -> Statement:
        """:attr:`upsert`, if no live row has the id."""
        return self.compiled(self._if_absent(self.dialect.insert(self._entries).values(self._new_row())))

    @cached_property
    def insert_if_absent_unless_erased(self) -> Statement:
        """The same, if the namespace is not refused."""
        return self.compiled(self._if_absent(self._insert_unless_erased))

    def _if_absent(self, insert: Any) -> Any:
        replaced = {name: insert.excluded[name] for name in Record._fields if name != "entry_id"}
        return insert.on_conflict_do_update(
            index_elements=[self._columns.entry_id], set_=replaced, where=self._columns.expires_at <= self._now
        )

    @property
    def _insert_unless_erased(self) -> Any:
        row = self._new_row()
        return self.dialect.insert(self._entries).from_select(
            list(row), select(*row.values()).where(not_erased(self, 1))
        )

    @cached_property
    def update_if_same(self) -> Statement:
        """:attr:`upsert`, if a live row of the namespace has the id and the content that is expected."""
        return self._update_if_same(self._columns.content)

    @cached_property
    def update_if_same_metadata(self) -> Statement:
        """The same, with the metadata that is expected."""
        return self._update_if_same(self._columns.metadata)

    def _update_if_same(self, column: ColumnElement[Any]) -> Statement:
        c, row = self._columns, self._new_row()
        # Compared as text, so that 1 and 1.0 differ on every dialect.
        expected = self.dialect.document_out(self.dialect.document_in(bindparam("expected", type_=Text)))
        same = self.dialect.document_out(column) == expected
        this = c.entry_id == bindparam("this_id", type_=Text)
        here = c.namespace == bindparam("this_namespace", type_=Text)
        return self.compiled(
            update(self._entries).where(this, here, self._live, same).values({name: row[name] for name in _REPLACED})
        )

    def _new_row(self) -> dict[str, ColumnElement[Any]]:
        """A parameter for each column."""
        return {
            column.name: self.dialect.value_in(column, bindparam(column.name, type_=self.dialect.type_in(column)))
            for column in self._entries.columns
        }

    def _or_replace(self, insert: Any) -> Any:
        c, new = self._columns, insert.excluded
        expired = c.expires_at <= self._now
        replaced = {name: new[name] for name in _REPLACED}
        return insert.on_conflict_do_update(
            index_elements=[c.entry_id],
            set_={
                "namespace": new.namespace,
                "created_at": case((expired, new.created_at), else_=c.created_at),
                **replaced,
            },
            where=or_(c.namespace == new.namespace, expired),
        )

    @cached_property
    def load(self) -> Statement:
        return self.compiled(self._page())

    @cached_property
    def load_several(self) -> Statement:
        """:attr:`load` for several namespaces, those of all in one order."""
        c = self._columns
        several = self.dialect.is_one_of(self.dialect.by_code_point(c.namespace), "namespaces")
        order = (c.created_at, self.dialect.by_code_point(c.entry_id))
        return self.compiled(self._select().where(several, self._live).order_by(*order))

    @cached_property
    def first_page(self) -> Statement:
        return self.compiled(self._page().limit(bindparam("limit", type_=Integer)))

    @cached_property
    def next_page(self) -> Statement:
        c = self._columns
        after = tuple_(self.dialect.instant_in(bindparam("created_at", type_=Text)), bindparam("entry_id", type_=Text))
        later = tuple_(c.created_at, self.dialect.by_code_point(c.entry_id)) > after
        return self.compiled(self._page().where(later).limit(bindparam("limit", type_=Integer)))

    @cached_property
    def newest(self) -> Statement:
        c = self._columns
        return self.compiled(
            self._select()
            .where(
                self._in_namespace_order, self.dialect.by_code_point(c.key) == bindparam("key", type_=Text), self._live
            )
            .where(self.dialect.steer_to_order(c.created_at))
            .order_by(c.created_at.desc(), self.dialect.by_code_point(c.entry_id).desc())
            .limit(literal_column("1"))
        )

    @cached_property
    def is_saved(self) -> Statement:
        """A row if the entry is just as these values would make it, but for the time it was made."""
        c = self._columns
        row = self._new_row()

        def is_same(column: Column[Any]) -> ColumnElement[bool]:
            given = row[column.name]
            if kind_of(column) == DOCUMENT:
                return self.dialect.document_out(column) == self.dialect.document_out(
                    given
                )  # as text: 1 and 1.0 differ
            return column.is_not_distinct_from(given) if column.nullable else column == given

        same = [is_same(column) for column in c if column.name != "created_at"]
        return self.compiled(select(literal_column("1")).where(*same))

    @cached_property
    def is_there(self) -> Statement:
        """A row if the live entry is there."""
        return self.compiled(select(literal_column("1")).where(self._one, self._in_namespace, self._live))

    @cached_property
    def is_used(self) -> Statement:
        """A row if the namespace has an entry, live or not."""
        return self.compiled(select(literal_column("1")).where(self._in_namespace).limit(literal_column("1")))

    @cached_property
    def delete(self) -> Statement:
        return self.compiled(delete(self._entries).where(self._one, self._in_namespace, self._live))

    @cached_property
    def delete_many(self) -> Statement:
        several = self.dialect.is_one_of(self._columns.entry_id, "entry_ids")
        return self.compiled(delete(self._entries).where(several, self._in_namespace, self._live))

    @cached_property
    def clear(self) -> Statement:
        return self.compiled(delete(self._entries).where(self._in_namespace))

    @cached_property
    def clear_between(self) -> Statement:
        """Delete the rows of all namespaces from ``first`` on that are before ``beyond``."""
        return self.compiled(delete(self._entries).where(*self._between))

    @cached_property
    def is_used_between(self) -> Statement:
        """A row if one of these namespaces has an entry, live or not."""
        return self.compiled(select(literal_column("1")).where(*self._between).limit(literal_column("1")))

    @cached_property
    def count(self) -> Statement:
        counted = select(func.count()).select_from(self._entries)
        return self.compiled(counted.where(self._in_namespace, self._live))

    @cached_property
    def next_namespaces(self) -> Statement:
        """The namespaces of the next rows in their order, each as often as it has rows among these."""
        namespace = self.dialect.by_code_point(self._columns.namespace)
        beyond = namespace > bindparam("after", type_=Text), namespace >= bindparam("prefix", type_=Text)
        rows = select(namespace).where(self._live, *beyond).order_by(namespace)
        return self.compiled(rows.limit(bindparam("rows", type_=Integer)))

    def _select(self) -> Select[Any]:
        return select(*[self.dialect.value_out(column) for column in self._entries.columns])

    def _page(self) -> Select[Any]:
        c = self._columns
        return (
            self._select()
            .where(self._in_namespace_order, self._live)
            .order_by(c.created_at, self.dialect.by_code_point(c.entry_id))
        )

    @property
    def _between(self) -> tuple[ColumnElement[bool], ...]:
        namespace = self.dialect.by_code_point(self._columns.namespace)
        return namespace >= bindparam("first", type_=Text), namespace < bindparam("beyond", type_=Text)

    @property
    def _now(self) -> ColumnElement[Any]:
        return self.dialect.native_instant_in("now")

    @property
    def _live(self) -> ColumnElement[bool]:
        expires_at = self._columns.expires_at
        return or_(expires_at.is_(None), expires_at > self._now)

    @property
    def _one(self) -> ColumnElement[bool]:
        return self._columns.entry_id == bindparam("entry_id", type_=Text)

    @property
    def _in_namespace(self) -> ColumnElement[bool]:
        return self._columns.namespace == bindparam("namespace", type_=Text)

    @property
    def _in_namespace_order(self) -> ColumnElement[bool]:
        """The same, by the indexes that keep the order of rule R4."""
        return self.dialect.by_code_point(self._columns.namespace) == bindparam("namespace", type_=Text)
