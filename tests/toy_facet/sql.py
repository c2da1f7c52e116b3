"""The notes in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache, cached_property
from typing import Any, ClassVar

from sqlalchemy import Integer, Select, Text, bindparam, delete, or_, select

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.databases.sql.operation import REPEAT, REPORT, operation, reads
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.facets import Purged
from firefly_memory.identifiers import original_or_none
from firefly_memory.search.index import Vector
from firefly_memory.search.sql.index import SQLSearchIndex, delete_vectors, write_vectors
from firefly_memory.tombstones.sql.refusal import unless_erased
from firefly_memory.tombstones.sql.statements import not_erased
from tests.toy_facet.log import Note, NoteRow, row_of, subject
from tests.toy_facet.numbered import numbered


class ToyStatements(FacetStatements):
    number: ClassVar[int]

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self._notes = self.in_schema(subject(self.number).table)

    @cached_property
    def put(self) -> Statement:
        columns = [self._notes.c[name] for name in NoteRow._fields]
        dialect = self.dialect
        row = [dialect.value_in(each, bindparam(each.name, type_=dialect.type_in(each))) for each in columns]
        insert = dialect.insert(self._notes).from_select(columns, select(*row).where(not_erased(self, 1)))
        replaced = {name: insert.excluded[name] for name in NoteRow._fields if name != "id"}
        return self.compiled(insert.on_conflict_do_update(index_elements=[self._notes.c.id], set_=replaced))

    @cached_property
    def read(self) -> Statement:
        return self.compiled(self._live_notes.where(self._is_one_of_these))

    @cached_property
    def page(self) -> Statement:
        found = self._live_notes.where(self._id > bindparam("after", type_=Text))
        return self.compiled(found.order_by(self._id).limit(bindparam("limit", type_=Integer)))

    @property
    def _live_notes(self) -> Select[Any]:
        c = self._notes.c
        columns = [self.dialect.value_out(each) for each in (c.id, c.body, c.expires_at, c.owner, c.group_id)]
        return select(*columns, c.position).where(self._is_live)

    @cached_property
    def of_owner(self) -> Statement:
        mine = self._notes.c.owner == bindparam("owner", type_=Text)
        found = select(self._notes.c.id).where(mine, self._id > bindparam("after", type_=Text))
        return self.compiled(found.order_by(self._id).limit(bindparam("limit", type_=Integer)))

    @cached_property
    def live_of_these(self) -> Statement:
        return self.compiled(self._ids.where(self._is_one_of_these, self._is_live).order_by(self._id))

    @cached_property
    def expired(self) -> Statement:
        limit = bindparam("limit", type_=Integer)
        return self.compiled(self._ids.where(self._notes.c.expires_at <= self._now).limit(limit))

    @cached_property
    def delete(self) -> Statement:
        return self.compiled(delete(self._notes).where(self._is_one_of_these))

    @property
    def _ids(self) -> Select[Any]:
        """Of notes that stay as they are until the transaction ends."""
        return select(self._notes.c.id).with_for_update()

    @property
    def _id(self) -> Any:
        return self.dialect.by_code_point(self._notes.c.id)

    @property
    def _is_one_of_these(self) -> Any:
        return self.dialect.is_one_of_many(self._id, "ids")

    @property
    def _now(self) -> Any:
        return self.dialect.instant_in(bindparam("now", type_=Text))

    @property
    def _is_live(self) -> Any:
        return or_(self._notes.c.expires_at.is_(None), self._notes.c.expires_at > self._now)


@cache
def statements_of(number: int) -> type[ToyStatements]:
    return type(f"Toy{number}Statements", (ToyStatements,), {"number": number})


class _RefusedError(Exception):
    """Rolls the transaction back: the vectors of the note that is there stay."""


@operation(on_lost_reply=REPEAT)
def put_note(session: Session, number: int, note: Note, vector: Vector | None) -> None:
    row, dialect = row_of(note), session.dialect
    values = {
        **row._asdict(),
        "expires_at": None if row.expires_at is None else dialect.instant(row.expires_at),
        "newest": dialect.instant(row.newest),
        "words": dialect.words(row.words),
    }

    def put(refusal: Values) -> bool:
        try:
            with session.transaction():
                _replace(session, number, {**values, **refusal}, {} if vector is None else {row.id: vector})
        except _RefusedError:
            return False
        return True

    unless_erased(session, "put_note", note.identities, put)


def _replace(session: Session, number: int, row: dict[str, Any], vectors: dict[str, Vector]) -> None:
    delete_vectors(session, subject(number), [row["id"]])
    if session.execute(session.statements(statements_of(number)).put, row) != 1:
        raise _RefusedError
    write_vectors(session, subject(number), vectors)


@reads
def read_notes(session: Session, number: int, note_ids: Sequence[str], now: datetime) -> list[Note]:
    values = {"ids": session.dialect.texts(note_ids), "now": session.dialect.instant(now)}
    return [_note(session, row) for row in session.fetch(session.statements(statements_of(number)).read, values)]


@reads
def read_page(session: Session, number: int, limit: int, after: str, now: datetime) -> list[Note]:
    values = {"limit": limit, "after": after, "now": session.dialect.instant(now)}
    return [_note(session, row) for row in session.fetch(session.statements(statements_of(number)).page, values)]


def _note(session: Session, row: Any) -> Note:
    note_id, body, expires_at, owner, group_id, position = row
    until = None if expires_at is None else session.dialect.read_instant(expires_at)
    return Note(note_id, body, until, owner, original_or_none(group_id), position)


@operation(on_lost_reply=REPORT)
def delete_notes(session: Session, number: int, note_ids: Sequence[str], now: datetime) -> int:
    values = {"ids": session.dialect.texts(note_ids), "now": session.dialect.instant(now)}
    return _delete(session, number, session.statements(statements_of(number)).live_of_these, values)


@operation(on_lost_reply=REPORT)
def purge_notes(session: Session, number: int, limit: int, now: datetime) -> Purged:
    values = {"limit": limit, "now": session.dialect.instant(now)}
    deleted = _delete(session, number, session.statements(statements_of(number)).expired, values)
    return Purged(deleted, more=deleted == limit)


@operation(on_lost_reply=REPORT)
def erase_notes(session: Session, number: int, note_ids: Sequence[str]) -> int:
    with session.transaction():
        return _delete_these(session, number, note_ids)


def _delete(session: Session, number: int, wanted: Statement, values: dict[str, Any]) -> int:
    """Delete the notes whose ids a statement finds, with their vectors; how many."""
    with session.transaction():
        return _delete_these(session, number, [row[0] for row in session.fetch(wanted, values)])


def _delete_these(session: Session, number: int, note_ids: Sequence[str]) -> int:
    there = delete_vectors(session, subject(number), note_ids)
    return session.execute(session.statements(statements_of(number)).delete, {"ids": session.dialect.texts(there)})


@reads
def notes_of(session: Session, number: int, owner: str, limit: int, after: str) -> list[str]:
    values = {"owner": owner, "limit": limit, "after": after}
    return [row[0] for row in session.fetch(session.statements(statements_of(number)).of_owner, values)]


class SQLToyLog:
    def __init__(self, number: int, executor: Executor) -> None:
        self._number = number
        self._run = executor.run
        self.index = SQLSearchIndex(executor, subject(number))

    async def put(self, note: Note, vector: Vector | None = None) -> None:
        await self._run(put_note, self._number, note, vector)

    async def get(self, note_id: str, now: datetime) -> Note | None:
        return next(iter(await self.read([note_id], now)), None)

    async def read(self, note_ids: Sequence[str], now: datetime) -> Sequence[Note]:
        return await self._run(read_notes, self._number, note_ids, now)

    async def page(self, limit: int, after: str, now: datetime) -> Sequence[Note]:
        return await self._run(read_page, self._number, limit, after, now)

    async def delete(self, note_ids: Sequence[str], now: datetime) -> int:
        return await self._run(delete_notes, self._number, note_ids, now)

    async def purge(self, limit: int, now: datetime) -> Purged:
        return await self._run(purge_notes, self._number, limit, now)

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[str]:
        return await self._run(notes_of, self._number, owner, limit, after)

    async def erase(self, note_ids: Sequence[str]) -> int:
        return await self._run(erase_notes, self._number, note_ids)


def __getattr__(name: str) -> Any:
    return numbered(name, {"log": lambda number: lambda executor, _dialect: SQLToyLog(number, executor)})
