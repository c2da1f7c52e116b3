"""The statements of facts and of what they said before. Lists have a module of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    case,
    cast,
    delete,
    exists,
    func,
    literal_column,
    not_,
    null,
    or_,
    select,
    tuple_,
    update,
)

from firefly_memory.codec import damaged
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.longterm.fact_form import checked_row, damaged_fact
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import FACTS, USERS, VERSIONS, FactRow, FactWrite, VersionRow, Written, as_said
from firefly_memory.longterm.sql.by_shape import ByShape
from firefly_memory.longterm.sql.parameters import double, limit, number, text, whole
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.tombstones.sql.statements import not_erased

if TYPE_CHECKING:
    from firefly_memory.databases.sql.session import Session, Values

_INSTANTS = ("last_accessed", "valid_from", "created_at", "newest")
_OF_VERSION = ("valid_from", "superseded_at")
_WORDS = ("searchable", "words")

_BEFORE = tuple(map(FactRow._fields.index, ("valid_from", "created_at")))
_LAST_ACCESSED, _NEWEST, _WORDS_PLACE = map(FactRow._fields.index, ("last_accessed", "newest", "words"))

_Shape = tuple[bool, ...]
"""That of a lookup."""

_EVERYWHERE: _Shape = (True, True, True, True)

DAMAGE = (AttributeError, OverflowError, TypeError, ValueError)


class FactStatements(FacetStatements):
    """What both dialects have in common."""

    by_dialect: ClassVar[Mapping[str, str]] = {
        "sqlite": "firefly_memory.longterm.sql.sqlite:SQLiteFactStatements",
        "postgresql": "firefly_memory.longterm.sql.postgresql:PostgreSQLFactStatements",
    }

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self.table = self.in_schema(FACTS.table)
        self.versions_table = self.in_schema(VERSIONS)
        self.people = self.in_schema(USERS)
        self.vectors = self.in_schema(FACTS.vectors)
        self.signatures = self.in_schema(FACTS.signatures)
        self.seen: ByShape[_Shape] = ByShape(
            lambda shape: self.compiled(self.first_seen(shape, *self.columns_shown(self.table)))
        )
        """The fact that a lookup of this shape finds."""
        self.count_access: ByShape[_Shape] = ByShape(lambda shape: self.compiled(self._count_access(shape)))
        """Counts an access to the fact that a lookup of this shape finds, and gives the fact."""

    def write(self, session: Session, writes: Sequence[FactWrite], language: IndexLanguage | None) -> list[Written]:
        """What :meth:`~firefly_memory.longterm.log.FactLog.set` does, with a few statements."""
        raise NotImplementedError

    def _count_access(self, shape: _Shape) -> Any:
        raise NotImplementedError

    def values(self, row: FactRow) -> dict[str, Any]:
        """The parameters for a fact."""
        return {**self._with_instants(row, _INSTANTS), "words": self.dialect.words(row.words)}

    def version_values(self, row: VersionRow) -> dict[str, Any]:
        """The parameters for a version."""
        return self._with_instants(row, _OF_VERSION)

    def _with_instants(self, row: FactRow | VersionRow, names: Sequence[str]) -> dict[str, Any]:
        moments = {name: getattr(row, name) for name in names}
        instants = {name: None if at is None else self.dialect.instant(at) for name, at in moments.items()}
        return {**row._asdict(), **instants}

    def row_of(self, row: Sequence[Any]) -> FactRow:
        """The fact that a row stands for, or ``CorruptDataError``."""
        values, instant_of = list(row), self.dialect.read_instant
        try:
            newest = values[_NEWEST]
            values[_NEWEST] = moment = instant_of(newest)
            for place in _BEFORE:
                values[place] = moment if values[place] == newest else instant_of(values[place])
            if values[_LAST_ACCESSED] is not None:
                values[_LAST_ACCESSED] = instant_of(values[_LAST_ACCESSED])
            values[_WORDS_PLACE] = tuple(str.split(values[_WORDS_PLACE], " ")) if values[_WORDS_PLACE] != "" else ()
            return checked_row(FactRow._make(values))
        except DAMAGE as exc:
            raise damaged_fact(row[0], exc) from exc

    def version_of(self, row: Sequence[Any]) -> VersionRow:
        """The version that a row stands for, or ``CorruptDataError``."""
        found = VersionRow(*row)
        try:
            instants: dict[str, Any] = {name: self._instant_of(getattr(found, name)) for name in _OF_VERSION}
            if not isinstance(found.value, str) or type(found.number) is not int:
                raise TypeError("its value or its number has another type")
            return found._replace(**instants)
        except DAMAGE as exc:
            raise damaged("reading a fact", f"version {found.number!r} of fact {found.fact_id!r}", exc) from exc

    def as_it_was(self, row: Sequence[Any]) -> FactRow:
        """The fact of a row of :attr:`said_at`."""
        fact, version = self.row_of(row[: len(FactRow._fields)]), row[len(FactRow._fields) :]
        return fact if version[0] is None else checked_row(as_said(fact, self.version_of(version)))

    def _instant_of(self, stored: Any) -> datetime:
        return self.dialect.read_instant(stored)

    def first_seen(self, shape: _Shape, *columns: ColumnElement[Any]) -> Select[Any]:
        found = select(*columns).where(self._is_in_lookup(shape))
        return found if sum(shape) <= 1 else found.order_by(self._rank(shape)).limit(literal_column("1"))

    def _is_in_lookup(self, shape: _Shape) -> ColumnElement[bool]:
        """Whether a fact is in one of the places of a :class:`~firefly_memory.longterm.places.Lookup`, and has the key.
        The person who was named may stand for another one."""
        c = self.table.c
        named = {name: text(name) for name in compress(Lookup._fields, shape)}
        words = [word_of_root(self.people, word) if name == "user" else word for name, word in named.items()]
        is_there = c.scope == words[0] if len(words) == 1 else c.scope.in_(words or [null()])
        return and_(is_there, c.key == text("key"))

    def _rank(self, shape: _Shape) -> ColumnElement[int]:
        """The most specific place first: what is in none of the others is the person's."""
        scope = self.table.c.scope
        ranks = {name: rank for rank, name in compress(enumerate(Lookup._fields), shape) if name != "user"}
        return case(*[(scope == text(name), number(rank)) for name, rank in ranks.items()], else_=number(1))

    @cached_property
    def said_at(self) -> Statement:
        """The fact that a lookup would have found ``at`` an instant, and what it said then, if that was a version."""
        c, v = self.table.c, self.versions_table.c
        at = self.dialect.instant_in(text("at"))
        earlier = self.versions_table.alias("earlier")
        last = (
            select(earlier.c.number)
            .where(self._code(earlier.c.fact_id) == c.id, earlier.c.valid_from <= at, earlier.c.number <= c.versions)
            .where(earlier.c.superseded_at > at)
            .order_by(self._code(earlier.c.fact_id).desc(), earlier.c.valid_from.desc(), earlier.c.number.desc())
            .limit(literal_column("1"))
            .scalar_subquery()
        )
        is_version = and_(c.valid_from > at, self._code(v.fact_id) == c.id, v.number == last)
        found = select(*self.columns_shown(self.table), *self._version_out).select_from(
            self.table.outerjoin(self.versions_table, is_version)
        )
        there = found.where(self._is_in_lookup(_EVERYWHERE), or_(c.valid_from <= at, v.number.is_not(None)))
        return self.compiled(there.order_by(self._rank(_EVERYWHERE)).limit(literal_column("1")))

    @cached_property
    def at_place(self) -> Statement:
        c = self.table.c
        return self.compiled(self._rows.where(c.scope == text("scope"), c.key == text("key")))

    @cached_property
    def these(self) -> Statement:
        return self.compiled(self._rows.where(self._is_one_of_these))

    @cached_property
    def page(self) -> Statement:
        return self.compiled(self._rows.where(self._id > text("after")).order_by(self._id).limit(limit()))

    @cached_property
    def of_owner(self) -> Statement:
        c = self.table.c
        found = select(c.id).where(c.owner == text("owner"), self._id > text("after"))
        return self.compiled(found.order_by(self._id).limit(limit()))

    @cached_property
    def count(self) -> Statement:
        return self.compiled(select(func.count()).select_from(self.table))

    @cached_property
    def insert(self) -> Statement:
        """One fact, unless its id or its key in its place is there."""
        return self.compiled(self.dialect.insert(self.table).from_select(*self._given()).on_conflict_do_nothing())

    def _given(self) -> tuple[list[str], Select[Any]]:
        row = {name: self.given(name) for name in FactRow._fields}
        return list(row), select(*row.values()).where(not_erased(self, 1))

    def given(self, name: str) -> ColumnElement[Any]:
        """The parameter for a column of facts."""
        column = self.table.c[name]
        return self.dialect.value_in(column, bindparam(name, type_=self.dialect.type_in(column)))

    @cached_property
    def replace(self) -> Statement:
        """The fact with an id becomes another one, in every field but those of its words."""
        names = [name for name in FactRow._fields if name not in ("id", *_WORDS)]
        return self.compiled(self._this.values({name: self.given(name) for name in names}))

    @cached_property
    def replace_words(self) -> Statement:
        """The fact with an id becomes another one, in every field."""
        names = [name for name in FactRow._fields if name != "id"]
        return self.compiled(self._this.values({name: self.given(name) for name in names}))

    @cached_property
    def rewrite(self) -> Statement:
        """New words for a fact that nobody has written or moved since."""
        c = self.table.c
        as_seen = c.written_by == text("seen"), c.scope == text("seen_scope")
        return self.compiled(self._this.where(*as_seen).values({name: self.given(name) for name in _WORDS}))

    @cached_property
    def confirm(self) -> Statement:
        c = self.table.c
        moved = c.confidence + (double("1.0") - c.confidence) / double("5.0")
        return self._changed(confidence=moved, times_confirmed=c.times_confirmed + number(1))

    @cached_property
    def contradict(self) -> Statement:
        c = self.table.c
        lower = c.confidence * double("0.8")
        return self._changed(confidence=lower, times_contradicted=c.times_contradicted + number(1))

    def _changed(self, **values: ColumnElement[Any]) -> Statement:
        c = self.table.c
        this = self._this.where(c.space == text("space"), c.written_by != text("written_by"))
        changed = this.values(**values, written_by=text("written_by"), newest=self.given("newest"))
        return self.compiled(changed.returning(*self.columns_out(self.table)))

    @cached_property
    def delete(self) -> Statement:
        return self.compiled(delete(self.table).where(self._is_one_of_these))

    @cached_property
    def last_written_by(self) -> Statement:
        """Those of some facts whose last write is one of these. They stay as they are until the transaction ends."""
        is_mine = self.dialect.is_one_of_many(self.table.c.written_by, "writes")
        these = select(self.table.c.id).where(self._is_one_of_these, is_mine)
        return self.compiled(these.order_by(self.table.c.id).with_for_update())

    @cached_property
    def without_vector(self) -> Statement:
        found = self._rows.where(self._id > text("after"), self._has_no_vector)
        return self.compiled(found.order_by(self._id).limit(limit()))

    @cached_property
    def lacking(self) -> Statement:
        """The ids of those of some facts that have no vector."""
        return self.compiled(select(self.table.c.id).where(self._is_one_of_these, self._has_no_vector))

    @cached_property
    def add_version(self) -> Statement:
        """A version. What a restored fact has under its number beyond its versions gives way."""
        row = {name: self.version_given(name) for name in VersionRow._fields}
        return self.compiled(self.insert_version(select(*row.values())))

    def version_given(self, name: str) -> ColumnElement[Any]:
        column = self.versions_table.c[name]
        return self.dialect.value_in(column, bindparam(name, type_=self.dialect.type_in(column)))

    def insert_version(self, rows: Select[Any]) -> Any:
        c = self.versions_table.c
        # SQLite would take the ON of the conflict for that of a join if there were no WHERE.
        source = rows.where(literal_column("1") == literal_column("1"))
        added = self.dialect.insert(self.versions_table).from_select(list(VersionRow._fields), source)
        replaced = {name: added.excluded[name] for name in VersionRow._fields[2:]}
        return added.on_conflict_do_update(index_elements=[c.fact_id, c.number], set_=replaced)

    @cached_property
    def versions_of(self) -> Statement:
        v = self.versions_table.c
        of_fact = self._code(v.fact_id) == text("fact_id")
        found = select(*self._version_out).where(of_fact, v.number > whole("after")).order_by(v.number)
        return self.compiled(found.limit(limit()))

    @cached_property
    def versions_of_owner(self) -> Statement:
        v = self.versions_table.c
        found = select(v.fact_id, v.number).where(v.owner == text("owner"), self._is_later_version)
        return self.compiled(found.order_by(self._code(v.fact_id), v.number).limit(limit()))

    @cached_property
    def page_of_versions(self) -> Statement:
        v = self.versions_table.c
        found = select(*self._version_out).where(self._is_later_version)
        return self.compiled(found.order_by(self._code(v.fact_id), v.number).limit(limit()))

    @cached_property
    def count_versions(self) -> Statement:
        return self.compiled(select(func.count()).select_from(self.versions_table))

    @cached_property
    def count_versions_of(self) -> Statement:
        """By fact."""
        v = self.versions_table.c
        return self.compiled(select(v.fact_id, func.count()).where(self._is_version_of_these).group_by(v.fact_id))

    @cached_property
    def delete_versions(self) -> Statement:
        """Some versions, each named ``fact/number``, of some facts."""
        v = self.versions_table.c
        name = v.fact_id.concat(literal_column("'/'")).concat(cast(v.number, Text))
        these = self._is_version_of_these, self.dialect.is_one_of_many(name, "names")
        return self.compiled(delete(self.versions_table).where(*these))

    @cached_property
    def delete_versions_of(self) -> Statement:
        """All versions of some facts."""
        return self.compiled(delete(self.versions_table).where(self._is_version_of_these))

    @property
    def _is_version_of_these(self) -> ColumnElement[bool]:
        return self.dialect.is_one_of_many(self._code(self.versions_table.c.fact_id), "ids")

    @property
    def _is_later_version(self) -> ColumnElement[bool]:
        v = self.versions_table.c
        return tuple_(self._code(v.fact_id), v.number) > tuple_(text("after"), whole("after_number"))

    @property
    def _version_out(self) -> list[ColumnElement[Any]]:
        return [self.dialect.value_out(self.versions_table.c[name]) for name in VersionRow._fields]

    def columns_out(self, of: FromClause) -> list[ColumnElement[Any]]:
        """The fields of a fact as they cross the border, from its table or from a part of a statement."""
        return [self.dialect.value_out(self.table.c[name], of.c[name]) for name in FactRow._fields]

    def columns_shown(self, of: FromClause) -> list[ColumnElement[Any]]:
        """The same without the words."""
        return without_words(self.columns_out(of))

    @property
    def _rows(self) -> Select[Any]:
        return select(*self.columns_out(self.table))

    @property
    def _this(self) -> Any:
        return update(self.table).where(self._id == text("this_id"))

    @property
    def _has_no_vector(self) -> ColumnElement[bool]:
        v = self.vectors.c
        return not_(exists().where(v.id == self.table.c.id, v.embedder == text("embedder")))

    @property
    def _is_one_of_these(self) -> ColumnElement[bool]:
        return self.dialect.is_one_of_many(self._id, "ids")

    @property
    def _id(self) -> ColumnElement[str]:
        return self._code(self.table.c.id)

    def _code(self, column: ColumnElement[str]) -> ColumnElement[str]:
        return self.dialect.by_code_point(column)


def words_of_people(writes: Iterable[FactWrite]) -> list[str]:
    """The words of the people in whose own places some facts are to be stored."""
    return [each.row.scope for each in writes if each.row.fact_scope == "user"]


def word_of_root(people: Table, word: ColumnElement[str]) -> ColumnElement[str]:
    """The word of the person for whom somebody stands; ``word`` itself, if they stand for nobody else."""
    root = select(people.c.stands_for).where(people.c.word == word).scalar_subquery()
    return func.coalesce(root, word)


def without_words(columns: list[ColumnElement[Any]]) -> list[ColumnElement[Any]]:
    """The fields of a fact, as :meth:`FactStatements.columns_out` gives them, with none in the place of its words."""
    return [literal_column("''") if place == _WORDS_PLACE else each for place, each in enumerate(columns)]


def parameters_of(lookup: Any, key: str) -> Values:
    """The parameters of a lookup."""
    return {**lookup._asdict(), "key": key}
