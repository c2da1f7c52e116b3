"""Entries of all namespaces in SQL: each page is one range of the index that keeps the order of rule R4."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, Text, bindparam, func, or_, select, tuple_

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.databases.sql.operation import reads
from firefly_memory.databases.sql.session import Session
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.entries.looking import Range
from firefly_memory.entries.record import Position, Row

_BEYOND_ALL = "\U0010ffff" * 513
"""Sorts after every name: none is so long."""


def _text(name: str) -> Any:
    return bindparam(name, type_=Text)


class LookingStatements(FacetStatements):
    """What looking reads of the entries."""

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self._entries = self.in_schema("memory_entries")
        c = self._entries.c
        self._namespace = dialect.by_code_point(c.namespace)
        self._order = [c.created_at, dialect.by_code_point(c.entry_id)]

    @cached_property
    def first_across(self) -> Statement:
        """The first rows of a range of namespaces."""
        return self.compiled(self._across().where(self._namespace >= _text("first")))

    @cached_property
    def next_across(self) -> Statement:
        """Those after a place."""
        return self.compiled(self._across().where(self._comes_after(self._namespace, *self._order)))

    @cached_property
    def first_of_key(self) -> Statement:
        """The first rows of a key."""
        return self.compiled(self._of_key())

    @cached_property
    def next_of_key(self) -> Statement:
        """Those after a place."""
        return self.compiled(self._of_key().where(self._comes_after(*self._order)))

    @cached_property
    def one(self) -> Statement:
        c = self._entries.c
        this = c.entry_id == _text("entry_id"), c.namespace == _text("namespace")
        return self.compiled(self._live_rows().where(*this))

    @cached_property
    def count_across(self) -> Statement:
        counted = select(func.count()).select_from(self._entries).where(self._is_live)
        return self.compiled(counted.where(self._namespace >= _text("first"), self._namespace < _text("beyond")))

    def _across(self) -> Select[Any]:
        before_the_end = self._live_rows().where(self._namespace < _text("beyond"))
        return before_the_end.order_by(self._namespace, *self._order).limit(bindparam("limit", type_=Integer))

    def _of_key(self) -> Select[Any]:
        key = self.dialect.by_code_point(self._entries.c.key) == _text("key")
        some = self._live_rows().where(self._namespace == _text("namespace"), key)
        return some.order_by(*self._order).limit(bindparam("limit", type_=Integer))

    def _live_rows(self) -> Select[Any]:
        return select(*[self.dialect.value_out(column) for column in self._entries.columns]).where(self._is_live)

    def _comes_after(self, *columns: ColumnElement[Any]) -> ColumnElement[bool]:
        """As one comparison of rows, which an index answers as one range."""
        place = [_text("after_namespace"), self.dialect.instant_in(_text("created_at")), _text("entry_id")]
        after: ColumnElement[bool] = tuple_(*columns) > tuple_(*place[-len(columns) :])
        return after

    @property
    def _is_live(self) -> ColumnElement[bool]:
        expires_at = self._entries.c.expires_at
        return or_(expires_at.is_(None), expires_at > self.dialect.instant_in(_text("now")))


@reads
def list_entries(
    session: Session, names: Range, after: tuple[str, Position] | None, limit: int, now: datetime
) -> Sequence[Row]:
    statements = session.statements(LookingStatements)
    values = {**_values(session, names, now), "limit": limit}
    if after is None or after[0] < names.first:
        return session.fetch(statements.first_across, values)
    return session.fetch(statements.next_across, {**values, "after_namespace": after[0], **_place(session, after[1])})


@reads
def list_entries_of_key(
    session: Session, namespace: str, key: str, after: Position | None, limit: int, now: datetime
) -> Sequence[Row]:
    statements = session.statements(LookingStatements)
    values = {"namespace": namespace, "key": key, "limit": limit, "now": session.dialect.instant(now)}
    if after is None:
        return session.fetch(statements.first_of_key, values)
    return session.fetch(statements.next_of_key, {**values, **_place(session, after)})


@reads
def read_entry(session: Session, namespace: str, entry_id: str, now: datetime) -> Sequence[Row]:
    values = {"namespace": namespace, "entry_id": entry_id, "now": session.dialect.instant(now)}
    return session.fetch(session.statements(LookingStatements).one, values)


@reads
def count_entries(session: Session, names: Range, now: datetime) -> int:
    rows = session.fetch(session.statements(LookingStatements).count_across, _values(session, names, now))
    return int(rows[0][0])


def _values(session: Session, names: Range, now: datetime) -> dict[str, Any]:
    return {"first": names.first, "beyond": names.beyond or _BEYOND_ALL, "now": session.dialect.instant(now)}


def _place(session: Session, position: Position) -> dict[str, Any]:
    return {"created_at": session.dialect.instant(position.created_at), "entry_id": position.entry_id}


class SQLDirectEntries:
    """A :class:`~firefly_memory.entries.looking.DirectEntries` over an executor."""

    def __init__(self, executor: Executor, dialect: type[SQLDialect]) -> None:
        self.form = dialect.form
        self.read_instant = dialect.read_instant
        self._run = executor.run

    async def across(
        self, names: Range, after: tuple[str, Position] | None, limit: int, now: datetime
    ) -> Sequence[Row]:
        return await self._run(list_entries, names, after, limit, now)

    async def of_key(
        self, namespace: str, key: str, after: Position | None, limit: int, now: datetime
    ) -> Sequence[Row]:
        return await self._run(list_entries_of_key, namespace, key, after, limit, now)

    async def one(self, namespace: str, entry_id: str, now: datetime) -> Sequence[Row]:
        return await self._run(read_entry, namespace, entry_id, now)

    async def count_across(self, names: Range, now: datetime) -> int:
        return await self._run(count_entries, names, now)
