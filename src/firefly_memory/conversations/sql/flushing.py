"""Flushes in SQL: turns leave the window, and come back into it, in one transaction."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Text, bindparam, delete, null, select, update

from firefly_memory.conversations.log import Flush, Flushed, Head, checked_flush
from firefly_memory.conversations.sql.operations import conversation_head
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.operation import UndecidedError, operation, reads
from firefly_memory.databases.sql.session import Session
from firefly_memory.databases.sql.statements import FacetStatements

_STATE = ("evicted_turns", "evicted_tokens", "summary", "flush_id")
"""What a flush gives the head, and a restoration gives back."""


class FlushStatements(FacetStatements):
    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self._heads = self.in_schema("memory_conversations")
        self._turns = self.in_schema("memory_turns")
        self._flushes = self.in_schema("memory_flushes")

    @cached_property
    def flush(self) -> Statement:
        """The new state of the head, if the claim still holds."""
        c = self._heads.c
        mine = update(self._heads).where(self._is_this(c), c.claim == self._given(c.flush_id))
        return self.compiled(mine.values(self._new_state(*_STATE, "dropped_turns", "marks")))

    @cached_property
    def restore(self) -> Statement:
        """An earlier state of the head, if the newest flush is still the same, and no turn is missing."""
        c = self._heads.c
        is_newest = c.flush_id == bindparam("newest", type_=Text)
        is_stored = c.dropped_turns <= self._given(c.evicted_turns)
        wanted = update(self._heads).where(self._is_this(c), is_newest, is_stored)
        return self.compiled(wanted.values(self._new_state(*_STATE)))

    @cached_property
    def insert(self) -> Statement:
        """The record of a flush. An import may bring one again that was taken back: it takes the place of that one."""
        c = self._flushes.c
        row = {column.name: self._given(column) for column in c}
        new = self.dialect.insert(self._flushes).values(row)
        other = {name: new.excluded[name] for name in row if name not in ("conversation_id", "flush_id")}
        return self.compiled(new.on_conflict_do_update(index_elements=[c.conversation_id, c.flush_id], set_=other))

    @cached_property
    def drop(self) -> Statement:
        t = self._turns.c
        dropped = t.turn_id < bindparam("dropped_turns", type_=BigInteger)
        return self.compiled(delete(self._turns).where(self._is_this(t), dropped))

    @cached_property
    def find(self) -> Statement:
        c = self._flushes.c
        columns = [self.dialect.value_out(c[name]).label(name) for name in Flush._fields]
        return self.compiled(select(*columns).where(self._is_this(c), c.flush_id == self._given(c.flush_id)))

    def _new_state(self, *names: str) -> dict[str, Any]:
        c = self._heads.c
        return {**{name: self._given(c[name]) for name in names}, "claim": null(), "claimed_until": null()}

    def _given(self, column: Any) -> Any:
        return self.dialect.value_in(column, bindparam(column.name, type_=self.dialect.type_in(column)))

    def _is_this(self, columns: Any) -> ColumnElement[bool]:
        this: ColumnElement[bool] = columns.conversation_id == bindparam("conversation_id", type_=Text)
        return this


def flush_unless_flushed(session: Session, conversation_id: str, flush: Flush, after: Flushed) -> bool:
    """:func:`flush_turns` after a lost answer. Looks last: the first attempt may still be under way when the second
    one begins. The record of a flush and its effect come in one transaction."""
    if flush_turns(session, conversation_id, flush, after):
        return True
    return find_flush(session, conversation_id, flush.flush_id) is not None


@operation(on_lost_reply=flush_unless_flushed, retryable=False)
def flush_turns(session: Session, conversation_id: str, flush: Flush, after: Flushed) -> bool:
    statements = session.statements(FlushStatements)
    values = {"conversation_id": conversation_id, "flush_id": flush.flush_id, **after._asdict()}
    record = {**values, **flush._asdict(), "created_at": session.dialect.instant(flush.created_at)}
    with session.transaction():
        if session.execute(statements.flush, values) == 0:
            return False
        session.execute(statements.insert, record)
        if after.dropped_turns:
            session.execute(statements.drop, values)
    return True


@reads
def find_flush(session: Session, conversation_id: str, flush_id: str) -> Flush | None:
    values = {"conversation_id": conversation_id, "flush_id": flush_id}
    rows = session.fetch(session.statements(FlushStatements).find, values)
    return checked_flush(conversation_id, Flush(*rows[0])) if rows else None


def restore_unless_restored(session: Session, conversation_id: str, newest: str, flush: Flush) -> bool:
    """:func:`restore_turns` after a lost answer. Looks last, as :func:`flush_unless_flushed` does."""
    if restore_turns(session, conversation_id, newest, flush):
        return True
    head = conversation_head(session, conversation_id)
    if head is None or find_flush(session, conversation_id, flush.flush_id) is None:
        return False
    if (head.flush_id, head.evicted_turns) == (flush.previous, flush.turns_before):
        return True
    if _is_in_force(session, head, newest):
        return False  # others have flushed after it, or dropped turns
    raise UndecidedError


def _is_in_force(session: Session, head: Head, flush_id: str) -> bool:
    """Whether a flush is in the chain of the head."""
    each = head.flush_id
    while each not in (None, flush_id):
        found = find_flush(session, head.conversation_id, each or "")
        each = None if found is None else found.previous
    return each is not None


@operation(on_lost_reply=restore_unless_restored, retryable=False)
def restore_turns(session: Session, conversation_id: str, newest: str, flush: Flush) -> bool:
    values = {
        "conversation_id": conversation_id,
        "newest": newest,
        "evicted_turns": flush.turns_before,
        "evicted_tokens": flush.tokens_before,
        "summary": flush.summary_before,
        "flush_id": flush.previous,
    }
    with session.writing():
        return session.execute(session.statements(FlushStatements).restore, values) == 1
