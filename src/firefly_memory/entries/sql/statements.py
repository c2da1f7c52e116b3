"""The statements, as values: built with Core from the schema, compiled once per dialect.

Compiled text is sent to the driver as it is. That makes an operation two to three times cheaper than executing the
Core construct. Documents and instants cross the border as text and integers, in types that every driver treats alike:
drivers and engines differ in how they read JSON, and asyncpg takes the first and last ``datetime`` for infinities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Dialect,
    Integer,
    Select,
    Table,
    Text,
    bindparam,
    case,
    delete,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.sql.elements import CompilerElement
from sqlalchemy.types import TypeEngine

from firefly_memory.agent_history.sql.statements import DialogueStatements
from firefly_memory.codec import Form
from firefly_memory.conversations.log import Appended, Draft
from firefly_memory.conversations.sql.statements import ConversationStatements
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.schema import metadata as schema
from firefly_memory.entries.record import Purged, Record

if TYPE_CHECKING:
    from firefly_memory.databases.sql.session import Session

_REPLACED = ("scope", "key", "content", "metadata", "expires_at", "importance")
"""What saving an entry again replaces."""

_DOCUMENTS = ("content", "metadata")
_INSTANTS = ("created_at", "expires_at", "updated_at", "claimed_until")


class Statements(ABC):
    """What both dialects have in common."""

    dialect_name: ClassVar[str]
    form: ClassVar[Form]
    begin: ClassVar[str]

    def __init__(self, dialect: Dialect, schema_name: str | None) -> None:
        self._dialect = dialect
        self._entries = schema.metadata(schema_name).tables[
            f"{schema_name}.memory_entries" if schema_name else "memory_entries"
        ]
        self._columns = self._entries.c
        self.conversations = ConversationStatements(self, schema_name)
        self.dialogues = DialogueStatements(self, schema_name)

    # What the dialects say differently.

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

    @property
    @abstractmethod
    def row_address(self) -> ColumnElement[Any]:
        """Where the row itself is, for the length of one statement: found without another look at an index."""

    @abstractmethod
    def is_in(self, column: ColumnElement[Any], rows: Select[Any]) -> ColumnElement[bool]:
        """``column`` is among the rows that a query finds before anything else is done."""

    @property
    def steer_to_order(self) -> ColumnElement[bool]:
        """True for every row; leads a planner that would rather sort to the index that has the order."""
        return true()

    @abstractmethod
    def texts(self, values: Sequence[str]) -> Any: ...

    def instant(self, moment: datetime) -> str:
        """A parameter for an instant."""
        return moment.isoformat(timespec="microseconds")

    @abstractmethod
    def write_all(self, session: Session[Any], records: Sequence[Record], now: datetime) -> list[Record]:
        """:attr:`upsert` for many rows inside a transaction; the records that were refused."""

    @abstractmethod
    def write_group(self, session: Session[Any], records: Sequence[Record], now: datetime) -> list[Record]:
        """The same for rows of different callers, durable in one go, each for itself."""

    @abstractmethod
    def write_turn(self, session: Session[Any], draft: Draft, expected: int | None) -> Appended | None:
        """Append a turn; what there is with it, or ``None`` where it may not be appended."""

    @abstractmethod
    def write_turns(self, session: Session[Any], drafts: Sequence[Draft]) -> list[Appended]:
        """Append turns of different callers, durable in one go; what there is with each. None has a condition."""

    @abstractmethod
    def insert(self, table: Table) -> Any:
        """The dialect's own insert, which knows conflicts."""

    def values(self, record: Record) -> dict[str, Any]:
        """The parameters for one row."""
        values = record._asdict()
        values["created_at"] = self.instant(record.created_at)
        if record.expires_at is not None:
            values["expires_at"] = self.instant(record.expires_at)
        return values

    # The statements.

    @cached_property
    def upsert(self) -> Statement:
        """Insert one row, or replace it; touches no row if a live one of another namespace has the id."""
        return self.compiled(self._or_replace(self.insert(self._entries).values(self._new_row())))

    @cached_property
    def insert_if_absent(self) -> Statement:
        """:attr:`upsert`, if no live row has the id."""
        insert = self.insert(self._entries).values(self._new_row())
        replaced = {name: insert.excluded[name] for name in Record._fields if name != "entry_id"}
        return self.compiled(
            insert.on_conflict_do_update(
                index_elements=[self._columns.entry_id], set_=replaced, where=self._columns.expires_at <= self._now
            )
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
        expected = self.document_out(self.document_in(bindparam("expected", type_=Text)))
        same = self.document_out(column) == expected
        this = c.entry_id == bindparam("this_id", type_=Text)
        here = c.namespace == bindparam("this_namespace", type_=Text)
        return self.compiled(
            update(self._entries).where(this, here, self._live, same).values({name: row[name] for name in _REPLACED})
        )

    def _new_row(self) -> dict[str, ColumnElement[Any]]:
        """A parameter for each column."""
        return {
            column.name: self.value_in(column.name, bindparam(column.name, type_=self.type_in(column)))
            for column in self._entries.columns
        }

    def type_in(self, column: Column[Any]) -> TypeEngine[Any]:
        """The type a column's values cross the border in."""
        return Text() if column.name in _DOCUMENTS or column.name in _INSTANTS else column.type

    def value_in(self, name: str, value: ColumnElement[Any]) -> ColumnElement[Any]:
        """A value that has crossed the border, as the column ``name`` takes it."""
        if name in _DOCUMENTS:
            return self.document_in(value)
        return self.instant_in(value) if name in _INSTANTS else value

    def value_out(self, column: Column[Any]) -> ColumnElement[Any]:
        """A column, as its values cross the border."""
        if column.name in _DOCUMENTS:
            return self.document_out(column).label(column.name)
        return self.instant_out(column).label(column.name) if column.name in _INSTANTS else column

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
        several = self.is_one_of(self.by_code_point(c.namespace), "namespaces")
        order = (c.created_at, self.by_code_point(c.entry_id))
        return self.compiled(self._select().where(several, self._live).order_by(*order))

    @cached_property
    def first_page(self) -> Statement:
        return self.compiled(self._page().limit(bindparam("limit", type_=Integer)))

    @cached_property
    def next_page(self) -> Statement:
        c = self._columns
        after = tuple_(self.instant_in(bindparam("created_at", type_=Text)), bindparam("entry_id", type_=Text))
        later = tuple_(c.created_at, self.by_code_point(c.entry_id)) > after
        return self.compiled(self._page().where(later).limit(bindparam("limit", type_=Integer)))

    @cached_property
    def newest(self) -> Statement:
        c = self._columns
        return self.compiled(
            self._select()
            .where(self._in_namespace_order, self.by_code_point(c.key) == bindparam("key", type_=Text), self._live)
            .where(self.steer_to_order)
            .order_by(c.created_at.desc(), self.by_code_point(c.entry_id).desc())
            .limit(literal_column("1"))
        )

    @cached_property
    def is_saved(self) -> Statement:
        """A row if the entry is just as these values would make it, but for the time it was made."""
        c = self._columns
        row = self._new_row()

        def is_same(column: Column[Any]) -> ColumnElement[bool]:
            given = row[column.name]
            if column.name in _DOCUMENTS:
                return self.document_out(column) == self.document_out(given)  # as text: 1 and 1.0 differ
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
        several = self.is_one_of(self._columns.entry_id, "entry_ids")
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
    def purge_some(self) -> Statement:
        c = self._columns
        some = select(self.row_address).select_from(self._entries).where(c.expires_at <= self._now)
        doomed = self.is_in(self.row_address, some.order_by(c.expires_at).limit(bindparam("limit", type_=Integer)))
        # Somebody may put off an expiry meanwhile. Said in a way no index is used for, so that the addresses are.
        still_expired = (c.expires_at > self._now).is_(false())
        return self.compiled(delete(self._entries).where(doomed, still_expired))

    def purge(self, session: Session[Any], limit: int, now: datetime) -> Purged:
        """Delete up to ``limit`` expired rows."""
        deleted = session.execute(self.purge_some, {"limit": limit, "now": self.instant(now)})
        return Purged(deleted, more=deleted == limit)

    @cached_property
    def namespaces(self) -> Statement:
        """Hops from one namespace to the next by index, so that their sizes do not matter."""
        namespace = self.by_code_point(self._columns.namespace)
        prefix = bindparam("prefix", type_=Text)
        one: ColumnElement[int] = literal_column("1")

        def fits(column: ColumnElement[str]) -> ColumnElement[bool]:
            return func.substr(column, one, func.length(prefix)) == prefix

        live = select(namespace).where(self._live).order_by(namespace).limit(one)
        start = live.where(namespace > bindparam("after", type_=Text), namespace >= prefix)
        hop = select(start.scalar_subquery().label("namespace")).cte("hop", recursive=True)
        following = live.where(namespace > hop.c.namespace)
        hops = hop.union_all(select(following.scalar_subquery()).where(fits(hop.c.namespace)))
        found = hops.c.namespace
        # No ORDER BY: the hops come in order, and sorting them would take all of them, not the first few.
        return self.compiled(
            select(found).where(found.is_not(None), fits(found)).limit(bindparam("limit", type_=Integer))
        )

    def compiled(self, construct: CompilerElement) -> Statement:
        """The text of a statement for this dialect and driver."""
        return Statement(construct, self._dialect)

    def _select(self) -> Select[Any]:
        return select(*[self.value_out(column) for column in self._entries.columns])

    def _page(self) -> Select[Any]:
        c = self._columns
        return (
            self._select()
            .where(self._in_namespace_order, self._live)
            .order_by(c.created_at, self.by_code_point(c.entry_id))
        )

    @property
    def _between(self) -> tuple[ColumnElement[bool], ...]:
        namespace = self.by_code_point(self._columns.namespace)
        return namespace >= bindparam("first", type_=Text), namespace < bindparam("beyond", type_=Text)

    @property
    def _now(self) -> ColumnElement[Any]:
        return self.instant_in(bindparam("now", type_=Text))

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
        return self.by_code_point(self._columns.namespace) == bindparam("namespace", type_=Text)
