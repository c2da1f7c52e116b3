"""The notes in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache, cached_property
from typing import Any, ClassVar

from sqlalchemy import Integer, Select, Text, bindparam, cast, delete, literal_column, or_, select, table

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.executor import Executor
from firefly_memory.databases.sql.operation import REPEAT, REPORT, operation, reads
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.facets import Purged
from firefly_memory.tombstones.sql.refusal import unless_erased
from firefly_memory.tombstones.sql.statements import not_erased
from tests.toy_facet.log import Note
from tests.toy_facet.numbered import numbered


class ToyStatements(FacetStatements):
    number: ClassVar[int]

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self._notes = self.in_schema(f"toy_{self.number}_notes")

    @cached_property
    def put(self) -> Statement:
        c = self._notes.c
        row = {
            "note_id": bindparam("note_id", type_=Text),
            "body": bindparam("body", type_=Text),
            "expires_at": self.dialect.instant_in(bindparam("expires_at", type_=Text)),
            "owner": bindparam("owner", type_=Text),
        }
        source = select(*row.values()).where(not_erased(self, 1))
        insert = self.dialect.insert(self._notes).from_select(list(row), source)
        replaced = {name: insert.excluded[name] for name in ("body", "expires_at", "owner")}
        return self.compiled(insert.on_conflict_do_update(index_elements=[c.note_id], set_=replaced))

    @cached_property
    def get(self) -> Statement:
        return self.compiled(self._notes_where(self._notes.c.note_id == bindparam("note_id", type_=Text)))

    @cached_property
    def page(self) -> Statement:
        note_id = self.dialect.by_code_point(self._notes.c.note_id)
        found = self._notes_where(note_id > bindparam("after", type_=Text))
        return self.compiled(found.order_by(note_id).limit(bindparam("limit", type_=Integer)))

    def _notes_where(self, condition: Any) -> Select[Any]:
        c = self._notes.c
        columns = [self.dialect.value_out(column) for column in (c.note_id, c.body, c.expires_at, c.owner)]
        return select(*columns).where(condition, self._live)

    @cached_property
    def search(self) -> Statement:
        c, word = self._notes.c, bindparam("word", type_=Text)
        if self.dialect.name == "sqlite":
            words = f"toy_{self.number}_words"
            rows: Select[Any] = select(literal_column("rowid")).select_from(table(words))
            found = c.number.in_(rows.where(literal_column(words).op("MATCH")(word)))
        else:
            from sqlalchemy.dialects.postgresql import TSQUERY

            found = c.words.op("@@")(cast(word, TSQUERY))
        return self.compiled(select(c.note_id).where(found, self._live).order_by(self.dialect.by_code_point(c.note_id)))

    @cached_property
    def of_owner(self) -> Statement:
        note_id, owner = self.dialect.by_code_point(self._notes.c.note_id), bindparam("owner", type_=Text)
        found = select(self._notes.c.note_id).where(
            self._notes.c.owner == owner, note_id > bindparam("after", type_=Text)
        )
        return self.compiled(found.order_by(note_id).limit(bindparam("limit", type_=Integer)))

    @cached_property
    def erase(self) -> Statement:
        return self.compiled(delete(self._notes).where(self.dialect.is_one_of(self._notes.c.note_id, "note_ids")))

    @cached_property
    def delete(self) -> Statement:
        these = self.dialect.is_one_of(self._notes.c.note_id, "note_ids")
        return self.compiled(delete(self._notes).where(these, self._live))

    @cached_property
    def purge(self) -> Statement:
        c, limit = self._notes.c, bindparam("limit", type_=Integer)
        some = select(self.dialect.row_address).select_from(self._notes).where(c.expires_at <= self._now).limit(limit)
        return self.compiled(delete(self._notes).where(self.dialect.is_in(self.dialect.row_address, some)))

    @property
    def _now(self) -> Any:
        return self.dialect.instant_in(bindparam("now", type_=Text))

    @property
    def _live(self) -> Any:
        return or_(self._notes.c.expires_at.is_(None), self._notes.c.expires_at > self._now)


@cache
def statements_of(number: int) -> type[ToyStatements]:
    return type(f"Toy{number}Statements", (ToyStatements,), {"number": number})


@operation(on_lost_reply=REPEAT)
def put_note(session: Session, number: int, note: Note) -> None:
    expires_at = None if note.expires_at is None else session.dialect.instant(note.expires_at)

    def put(refusal: Values) -> bool:
        values = {**note._asdict(), "expires_at": expires_at, **refusal}
        with session.writing():
            return session.execute(session.statements(statements_of(number)).put, values) == 1

    unless_erased(session, "put_note", note.identities, put)


@reads
def get_note(session: Session, number: int, note_id: str, now: datetime) -> Note | None:
    values = {"note_id": note_id, "now": session.dialect.instant(now)}
    rows = session.fetch(session.statements(statements_of(number)).get, values)
    return _note(session, rows[0]) if rows else None


@reads
def read_page(session: Session, number: int, limit: int, after: str, now: datetime) -> list[Note]:
    values = {"limit": limit, "after": after, "now": session.dialect.instant(now)}
    return [_note(session, row) for row in session.fetch(session.statements(statements_of(number)).page, values)]


def _note(session: Session, row: Any) -> Note:
    note_id, body, expires_at, owner = row
    return Note(note_id, body, None if expires_at is None else session.dialect.read_instant(expires_at), owner)


@reads
def search_notes(session: Session, number: int, word: str, now: datetime) -> list[str]:
    values = {"word": word, "now": session.dialect.instant(now)}
    return [row[0] for row in session.fetch(session.statements(statements_of(number)).search, values)]


@operation(on_lost_reply=REPORT)
def delete_notes(session: Session, number: int, note_ids: Sequence[str], now: datetime) -> int:
    values = {"note_ids": session.dialect.texts(note_ids), "now": session.dialect.instant(now)}
    with session.writing():
        return session.execute(session.statements(statements_of(number)).delete, values)


@operation(on_lost_reply=REPORT)
def purge_notes(session: Session, number: int, limit: int, now: datetime) -> Purged:
    with session.writing():
        values = {"limit": limit, "now": session.dialect.instant(now)}
        deleted = session.execute(session.statements(statements_of(number)).purge, values)
    return Purged(deleted, more=deleted == limit)


@reads
def notes_of(session: Session, number: int, owner: str, limit: int, after: str) -> list[str]:
    values = {"owner": owner, "limit": limit, "after": after}
    return [row[0] for row in session.fetch(session.statements(statements_of(number)).of_owner, values)]


@operation(on_lost_reply=REPORT)
def erase_notes(session: Session, number: int, note_ids: Sequence[str]) -> int:
    values = {"note_ids": session.dialect.texts(note_ids)}
    with session.writing():
        return session.execute(session.statements(statements_of(number)).erase, values)


class SQLToyLog:
    def __init__(self, number: int, executor: Executor) -> None:
        self._number = number
        self._run = executor.run

    async def put(self, note: Note) -> None:
        await self._run(put_note, self._number, note)

    async def get(self, note_id: str, now: datetime) -> Note | None:
        return await self._run(get_note, self._number, note_id, now)

    async def page(self, limit: int, after: str, now: datetime) -> Sequence[Note]:
        return await self._run(read_page, self._number, limit, after, now)

    async def search(self, word: str, now: datetime) -> Sequence[str]:
        return await self._run(search_notes, self._number, word, now)

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
