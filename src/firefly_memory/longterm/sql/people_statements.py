"""The statements of people. Those of a merging have a module of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Select, bindparam, delete, func, literal_column, select, tuple_, union, update

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.longterm.person_form import checked_user, damaged_user
from firefly_memory.longterm.rows import USERS, PersonMovedError, UserRow
from firefly_memory.longterm.sql.parameters import limit, number, text
from firefly_memory.longterm.sql.statements import DAMAGE
from firefly_memory.tombstones.sql.statements import not_erased

if TYPE_CHECKING:
    from firefly_memory.databases.sql.session import Session

_INSTANTS = ("last_conversation_at", "first_seen", "updated_at")


class GroupChangedError(Exception):
    """Rolls a transaction back, which then begins again: a row that is locked later would be locked out of order."""


class PeopleStatements(FacetStatements):
    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self.table = self.in_schema(USERS)

    def root_in(self, session: Session, word: str) -> UserRow | None:
        """The person for whom the one with a word stands."""
        rows = session.fetch(self.root, {"word": word})
        return self.row_of(rows[0]) if rows else None

    def lock_group(self, session: Session, words: Sequence[str]) -> list[UserRow]:
        """Some people by their words, and all who stand for one of them: nobody else may hold or change them until the
        transaction ends. :class:`GroupChangedError` if these have become other people meanwhile."""
        values = {"words": self.dialect.texts(sorted(words))}
        locked = [self.row_of(row) for row in session.fetch(self.locked, values)]
        if locked != [self.row_of(row) for row in session.fetch(self.group, values)]:
            raise GroupChangedError
        return locked

    def hold(self, session: Session, words: Iterable[str]) -> None:
        """Keep people from being merged until the transaction ends; ``PersonMovedError`` if one is already."""
        asked = list(dict.fromkeys(words))
        held = dict(map(tuple, session.fetch(self.held, {"words": self.dialect.texts(asked)}))) if asked else {}
        for word in asked:
            root = self.root_in(session, word) if held.get(word, word) != word else None
            if root is not None:
                raise PersonMovedError(word, root)

    def values(self, row: UserRow) -> dict[str, Any]:
        """The parameters for a person."""
        moments = {name: getattr(row, name) for name in _INSTANTS}
        instants = {name: None if at is None else self.dialect.instant(at) for name, at in moments.items()}
        return {**row._asdict(), **instants}

    def row_of(self, row: Sequence[Any]) -> UserRow:
        """The person that a row stands for, or ``CorruptDataError``."""
        found, instant = UserRow(*row), self.dialect.read_instant
        last = found.last_conversation_at
        try:
            moments: dict[str, Any] = {name: instant(getattr(found, name)) for name in _INSTANTS[1:]}
            last = None if last is None else instant(last)
            return checked_user(found._replace(last_conversation_at=last, **moments))
        except DAMAGE as exc:
            raise damaged_user(found.id, exc) from exc

    @cached_property
    def insert(self) -> Statement:
        """One person, unless the id, the word or a contact is there."""
        row = {name: self.given(name) for name in UserRow._fields}
        source = select(*row.values()).where(not_erased(self, 1))
        return self.compiled(self.dialect.insert(self.table).from_select(list(row), source).on_conflict_do_nothing())

    def given(self, name: str) -> ColumnElement[Any]:
        """The parameter for a column of people."""
        column = self.table.c[name]
        return self.dialect.value_in(column, bindparam(name, type_=self.dialect.type_in(column)))

    @cached_property
    def replace(self) -> Statement:
        """The person with an id becomes another one."""
        names = [name for name in UserRow._fields if name != "id"]
        this = update(self.table).where(self._id == text("this_id"))
        return self.compiled(this.values({name: self.given(name) for name in names}))

    @cached_property
    def add_name(self) -> Statement:
        """A display name for a person who has none, and stands for nobody else."""
        c = self.table.c
        has_none = func.coalesce(c.display_name, literal_column("''")) == literal_column("''")
        this = update(self.table).where(c.word == text("word"), c.stands_for == text("word"), has_none)
        named = this.where(not_erased(self, 1)).values(
            {each: self.given(each) for each in ("display_name", "updated_at")}
        )
        return self.compiled(named.returning(*self.columns_out))

    @cached_property
    def count_conversation(self) -> Statement:
        """For the person for whom another one stands. Nothing, if they stand for somebody else by now."""
        c, asked = self.table.c, self.table.alias("asked").c
        root = select(asked.stands_for).where(asked.word == text("word")).scalar_subquery()
        this = update(self.table).where(c.word == root, c.stands_for == c.word, c.written_by != text("written_by"))
        counted = this.values(
            total_conversations=c.total_conversations + number(1),
            last_conversation_at=self.given("last_conversation_at"),
            written_by=text("written_by"),
            updated_at=self.given("updated_at"),
        )
        return self.compiled(counted.returning(*self.columns_out))

    @cached_property
    def with_word(self) -> Statement:
        return self.compiled(self._rows.where(self.table.c.word == text("word")))

    @cached_property
    def root(self) -> Statement:
        asked = self.table.alias("asked").c
        root = select(asked.stands_for).where(asked.word == text("word")).scalar_subquery()
        return self.compiled(self._rows.where(self.table.c.word == root))

    @cached_property
    def held(self) -> Statement:
        """Some people by their words, who are neither merged nor deleted until the transaction ends. Everybody locks
        people in this order."""
        c = self.table.c
        these = select(c.word, c.stands_for).where(self.dialect.is_one_of_many(c.word, "words")).order_by(c.word)
        return self.compiled(these.with_for_update(read=True, key_share=True))

    @cached_property
    def locked(self) -> Statement:
        """:attr:`group`, whom nobody else may hold or change until the transaction ends."""
        return self.compiled(self._group.with_for_update())

    @cached_property
    def group(self) -> Statement:
        """Some people by their words, and all who stand for one of them."""
        return self.compiled(self._group)

    @property
    def _group(self) -> Select[Any]:
        c = self.table.c
        parts = [select(c.number).where(self.dialect.is_one_of(each, "words")) for each in (c.word, c.stands_for)]
        these = select(union(*parts).subquery("these").c.number)
        return self._rows.where(self.dialect.is_in(c.number, these)).order_by(c.word)

    @cached_property
    def in_order(self) -> Statement:
        return self.compiled(self._in_order)

    @cached_property
    def in_order_after(self) -> Statement:
        c = self.table.c
        moment = self.dialect.instant_in(text("at"))
        return self.compiled(self._in_order.where(tuple_(c.first_seen, self._id) > tuple_(moment, text("after"))))

    @cached_property
    def page(self) -> Statement:
        return self.compiled(self._rows.where(self._id > text("after")).order_by(self._id).limit(limit()))

    @cached_property
    def these(self) -> Statement:
        return self.compiled(self._rows.where(self._is_one_of_these))

    @cached_property
    def same_people(self) -> Statement:
        c, named = self.table.c, self.table.alias("named").c
        words = select(named.stands_for).where(self.dialect.is_one_of_many(named.canonical_id, "ids"))
        return self.compiled(self._rows.where(c.stands_for.in_(words)))

    @cached_property
    def count(self) -> Statement:
        return self.compiled(select(func.count()).select_from(self.table))

    @cached_property
    def delete(self) -> Statement:
        return self.compiled(delete(self.table).where(self._is_one_of_these))

    @property
    def columns_out(self) -> list[ColumnElement[Any]]:
        return [self.dialect.value_out(self.table.c[name]) for name in UserRow._fields]

    @property
    def _rows(self) -> Select[Any]:
        return select(*self.columns_out)

    @property
    def _in_order(self) -> Select[Any]:
        c = self.table.c
        return self._rows.where(c.space == text("space")).order_by(c.first_seen, self._id).limit(limit())

    @property
    def _is_one_of_these(self) -> ColumnElement[bool]:
        return self.dialect.is_one_of_many(self._id, "ids")

    @property
    def _id(self) -> ColumnElement[str]:
        return self.dialect.by_code_point(self.table.c.id)
