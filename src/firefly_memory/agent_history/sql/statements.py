"""The SQL statements of agent history, as values, like those of entries."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Text, and_, bindparam, delete, insert, literal_column, select, update

from firefly_memory.agent_history.log import HistoryEntry, HistoryRecord, checked_entry, checked_record, damaged_history
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.tombstones.sql.statements import not_erased


def _number(name: str) -> Any:
    return bindparam(name, type_=BigInteger)


def _text(name: str) -> Any:
    return bindparam(name, type_=Text)


class HistoryStatements(FacetStatements):
    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self.table = self.in_schema("memory_agent_history")
        self.entries = self.in_schema("memory_agent_history_entries")

    def values(self, record: HistoryRecord) -> dict[str, Any]:
        """The parameters for a row."""
        instant = self.dialect.instant(record.updated_at)
        return {**record._asdict(), "branches": json.dumps(record.branches), "updated_at": instant}

    def record_of(self, row: Any) -> HistoryRecord:
        """The record that a row stands for."""
        record = HistoryRecord(*row)
        try:
            moment = self.dialect.read_instant(record.updated_at)
            return checked_record(record._replace(branches=json.loads(row[6]), updated_at=moment))
        except (AttributeError, OverflowError, RecursionError, TypeError, ValueError) as exc:
            raise damaged_history("conversation", record.conversation_id, exc) from exc

    def entry_of(self, row: Any) -> HistoryEntry:
        """The entry that a row stands for."""
        return checked_entry(HistoryEntry(*row))

    @cached_property
    def record(self) -> Statement:
        return self.compiled(select(*self._columns()).where(self._is_this))

    @cached_property
    def newest(self) -> Statement:
        return self.compiled(self._newest())

    @cached_property
    def newest_of_scope(self) -> Statement:
        return self.compiled(self._newest().where(self.table.c.scope == _text("scope")))

    def _newest(self) -> Any:
        return select(*self._columns()).order_by(self.table.c.updated_at.desc()).limit(_number("limit"))

    @cached_property
    def page(self) -> Statement:
        """The records after an id, in the order of ids."""
        order = self.dialect.by_code_point(self.table.c.conversation_id)
        some = select(*self._columns()).where(order > _text("after"))
        return self.compiled(some.order_by(order).limit(_number("limit")))

    @cached_property
    def locked(self) -> Statement:
        """The record, if it has the expected revision, locked against other writers."""
        return self.compiled(select(*self._columns()).where(self._is_expected).with_for_update())

    @cached_property
    def create(self) -> Statement:
        """Insert a record; no row is affected if the record exists, or is refused."""
        row = self._row()
        new = self.dialect.insert(self.table).from_select(list(row), select(*row.values()).where(not_erased(self, 2)))
        return self.compiled(new.on_conflict_do_nothing())

    @cached_property
    def replace(self) -> Statement:
        """Replace a record; no row is affected if the new one is refused."""
        row = self._row()
        del row["conversation_id"]
        return self.compiled(update(self.table).where(self._is_this, not_erased(self, 2)).values(row))

    @cached_property
    def delete(self) -> Statement:
        return self.compiled(delete(self.table).where(self._is_this))

    @cached_property
    def add(self) -> Statement:
        """A new entry."""
        row = {name: _text(name) for name in HistoryEntry._fields}
        return self.compiled(insert(self.entries).values({**row, "holders": _number("holders")}))

    @cached_property
    def hold(self) -> Statement:
        """Change the number of holders of an entry; no row is affected if the entry is missing."""
        e = self.entries.c
        this = e.entry_id == _text("this_id")
        return self.compiled(update(self.entries).where(this).values(holders=e.holders + _number("gained")))

    @cached_property
    def history(self) -> Statement:
        """An entry and those before it, at most ``limit``. The recursion collects ids only, and each message is read
        once: if damaged rows lead in a circle, the steps cost no more than elsewhere."""
        e = self.entries.c
        one: ColumnElement[int] = literal_column("1")
        head = select(e.entry_id, e.parent_id, one.label("position")).where(e.entry_id == _text("head_id"))
        chain = head.cte("chain", recursive=True)
        before = select(e.entry_id, e.parent_id, chain.c.position + one)
        above = before.where(e.entry_id == chain.c.parent_id, chain.c.position < _number("limit"))
        found = self.dialect.is_in(e.entry_id, select(chain.union_all(above).c.entry_id))
        return self.compiled(select(*[e[name] for name in HistoryEntry._fields]).where(found))

    @cached_property
    def these(self) -> Statement:
        """Entries by their ids."""
        columns = [self.entries.c[name] for name in HistoryEntry._fields]
        return self.compiled(select(*columns).where(self._is_one_of_these))

    @cached_property
    def shared(self) -> Statement:
        """The entries among these that have several holders."""
        e = self.entries.c
        return self.compiled(select(e.entry_id).where(self._is_one_of_these, e.holders > literal_column("1")))

    @cached_property
    def released(self) -> Statement:
        """Entries without holders, and the entries before them that only they hold; all are locked."""
        e = self.entries.c
        one: ColumnElement[int] = literal_column("1")
        nobody = select(e.entry_id, e.parent_id, one.label("position")).where(e.holders == literal_column("0"))
        below = nobody.cte("below", recursive=True)
        before = select(e.entry_id, e.parent_id, below.c.position + one)
        only_they = e.entry_id == below.c.parent_id, e.holders == one, below.c.position < _number("steps")
        found = select(below.union_all(before.where(*only_they)).c.entry_id)
        # In one order, so that two deletions do not wait for each other.
        locked = select(e.entry_id, e.parent_id, e.holders).order_by(e.entry_id).with_for_update()
        return self.compiled(locked.where(self.dialect.is_in(e.entry_id, found)))

    @cached_property
    def remove(self) -> Statement:
        return self.compiled(delete(self.entries).where(self._is_one_of_these))

    def _columns(self) -> list[Any]:
        return [self.dialect.value_out(self.table.c[name]) for name in HistoryRecord._fields]

    def _row(self) -> dict[str, Any]:
        said = self.dialect
        parameters = [(each, bindparam(each.name, type_=said.type_in(each))) for each in self.table.columns]
        return {column.name: said.value_in(column, parameter) for column, parameter in parameters}

    @property
    def _is_this(self) -> ColumnElement[bool]:
        this: ColumnElement[bool] = self.table.c.conversation_id == _text("this_id")
        return this

    @property
    def _is_one_of_these(self) -> ColumnElement[bool]:
        return self.dialect.is_one_of(self.entries.c.entry_id, "entry_ids")

    @property
    def _is_expected(self) -> ColumnElement[bool]:
        return and_(self._is_this, self.table.c.revision == _text("expected"))
