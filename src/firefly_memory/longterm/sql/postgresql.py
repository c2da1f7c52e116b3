"""Facts in PostgreSQL: one fact, with what it said before and its vector, by one statement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from sqlalchemy import (
    Boolean,
    ColumnElement,
    FromClause,
    LargeBinary,
    Text,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
    true,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.postgresql.arrays import array_in, array_text
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.errors import ConflictError
from firefly_memory.longterm.rows import FACTS, FactRow, FactWrite, VersionRow, Written
from firefly_memory.longterm.sql.list_statements import ListStatements
from firefly_memory.longterm.sql.parameters import number, text
from firefly_memory.longterm.sql.people_statements import PeopleStatements
from firefly_memory.longterm.sql.statements import FactStatements, words_of_people
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.sql.index import write_vectors
from firefly_memory.search.sql.languages import agree_on_language
from firefly_memory.search.sql.statements import OF_SIGNATURE, OF_VECTOR, statements_of
from firefly_memory.tombstones.sql.refusal import unless_erased
from firefly_memory.tombstones.sql.statements import not_erased

_ONE: Any = literal_column("1")
_ATTEMPTS = 1_000  # each that fails is another writer's success


class _MetError(Exception):
    """Rolls the transaction back: somebody else has stored one of the facts since it began."""


class _Kind(NamedTuple):
    """What a statement that stores a fact depends on."""

    has_vector: bool
    knows_language: bool
    """Whether it looks for the language of the index itself."""


class PostgreSQLFactStatements(FactStatements):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stores: dict[_Kind, Statement] = {}

    def write(self, session: Session, writes: Sequence[FactWrite], language: IndexLanguage | None) -> list[Written]:
        if len(writes) == 1 and language is not None:
            written = self._write_at_once(session, writes[0], language)
            if written is not None:
                return [written]
        for _ in range(_ATTEMPTS):
            try:
                with session.transaction():
                    return self._write(session, writes, language)
            except _MetError:
                continue
        raise ConflictError("set_facts: other writers have stored one of the facts each time; try again")

    def _write_at_once(self, session: Session, write: FactWrite, language: IndexLanguage) -> Written | None:
        """``None`` if something has to be looked at: the person, the language, or the fact of another writer."""

        def attempt(refusal: Values) -> Written | None:
            with session.attempt():
                return self._stored(session, write, language, refusal)

        return unless_erased(session, "set_facts", write.row.identities, attempt)

    def _write(self, session: Session, writes: Sequence[FactWrite], language: IndexLanguage | None) -> list[Written]:
        session.statements(PeopleStatements).hold(session, words_of_people(writes))
        if language is not None:
            agree_on_language(session, FACTS, language)
        in_order = sorted(writes, key=lambda each: (each.row.scope, each.row.key))
        places = {name: array_text(getattr(each.row, name) for each in in_order) for name in ("scope", "key")}
        there = {(row[0], row[1]) for row in session.fetch(self.locked, places)}
        written = {
            each.row.id: self._write_over(session, each)
            if (each.row.scope, each.row.key) in there
            else self._add(session, each)
            for each in in_order
        }
        return [written[each.row.id] for each in writes]

    def _write_over(self, session: Session, write: FactWrite) -> Written:
        """For a fact that is there, and locked."""

        def attempt(refusal: Values) -> Written | None:
            return self._stored(session, write, None, refusal)

        written = unless_erased(session, "set_facts", write.row.identities, attempt)
        if written is None:
            raise _MetError
        return written

    def _add(self, session: Session, write: FactWrite) -> Written:
        """For a fact that is not there. One that is there by now must not be locked out of order."""
        row = write.row

        def attempt(refusal: Values) -> int:
            return session.execute(self.insert, {**self.values(row), **refusal})

        if not unless_erased(session, "set_facts", row.identities, attempt):
            raise _MetError
        if write.vector is not None:
            write_vectors(session, FACTS, {row.id: write.vector})
        return Written(row, "created")

    def _stored(
        self, session: Session, write: FactWrite, language: IndexLanguage | None, refusal: Values
    ) -> Written | None:
        flags = {name: getattr(write, name) for name in ("overwrite", "sets_type", "sets_confidence")}
        values: dict[str, Any] = {**self.values(write.row), **flags, **refusal}
        if language is not None:
            values |= {**language._asdict(), "subject": FACTS.kind}
        if write.vector is not None:
            values |= write.vector._asdict()
        rows = session.fetch(self.store(write.vector is not None, language is not None), values)
        return Written(self.row_of(rows[0][1:]), rows[0][0]) if rows else None

    @cached_property
    def locked(self) -> Statement:
        """The facts of some places with some keys, which stay as they are until the transaction ends."""
        c = self.table.c
        arrays = array_in("scope", Text()), array_in("key", Text())
        given = func.unnest(*arrays).table_valued("scope", "key").render_derived(name="given")
        found = select(c.scope, c.key).join_from(
            self.table, given, and_(c.scope == given.c.scope, c.key == given.c.key)
        )
        return self.compiled(found.order_by(c.id).with_for_update(key_share=True, of=self.table))

    def _count_access(self, shape: tuple[bool, ...]) -> Any:
        """A row without a fact, if the one that was found has changed its place since: then it is to be asked again."""
        c = self.table.c
        found = self.first_seen(shape, c.number, c.scope).cte("found")
        this = update(self.table).where(c.number == found.c.number, c.scope == found.c.scope)
        counted = this.values(
            access_count=c.access_count + number(1), last_accessed=self.dialect.instant_in(text("now"))
        )
        row = counted.returning(*[c[name] for name in FactRow._fields]).cte("counted")
        return select(*self.columns_shown(row)).select_from(found.outerjoin(row, true()))

    def store(self, has_vector: bool, knows_language: bool) -> Statement:
        """Stores one fact: its outcome, and the fact as it is now. Nothing, if its person stands for another one, or is
        refused, if the index has another language, or if somebody has stored the fact since the statement began."""
        kind = _Kind(has_vector, knows_language)
        made = self._stores.get(kind)
        if made is None:
            made = self._stores[kind] = self.compiled(self._store(kind))
        return made

    def _store(self, kind: _Kind) -> Any:
        gate = self._gate(kind)
        is_open = exists(select(_ONE).select_from(gate))
        old = self._old(is_open)
        is_mine = old.c.written_by == text("written_by")
        is_written = and_(bindparam("overwrite", type_=Boolean), not_(is_mine))
        differs = old.c.value != text("value")
        updated = self._update(old, is_written, differs).cte("updated")
        row = {name: self.given(name) for name in FactRow._fields}
        new = select(*row.values()).where(is_open, not_(exists(select(_ONE).select_from(old))))
        added = insert(self.table).from_select(list(row), new)
        added = added.on_conflict_do_nothing(index_elements=[self.table.c.scope, self.table.c.key])
        created = added.returning(*self._columns).cte("created")
        mine = case((old.c.id == text("id"), literal_column("'created'")), else_=literal_column("'updated'"))
        kept = case((is_mine, mine), else_=literal_column("'skipped'"))
        every = union_all(
            select(literal_column("'created'", Text).label("outcome"), *created.c),
            select(literal_column("'updated'", Text), *updated.c),
            select(kept, *[old.c[name] for name in FactRow._fields]).where(not_(is_written)),
        ).subquery("written")
        beside = [self._leave_version(old, is_written, differs).cte("version")]
        beside += self._leave_no_vector(old, and_(is_written, differs), kind)
        if kind.has_vector:
            beside += self._add_vector(created, updated)
        return select(every.c.outcome, *self.columns_out(every)).add_cte(*beside)

    @property
    def _columns(self) -> list[ColumnElement[Any]]:
        return [self.table.c[name] for name in FactRow._fields]

    def _gate(self, kind: _Kind) -> Any:
        """A row, if the fact may be stored. The person is locked before any fact, as others do it."""
        u = self.people.c
        person = select(u.stands_for).where(u.word == text("scope"))
        held = person.with_for_update(read=True, key_share=True).cte("person")
        is_moved = exists(select(_ONE).select_from(held).where(held.c.stands_for != text("scope")))
        conditions = [not_(is_moved), not_erased(self, 1)]
        if kind.knows_language:
            conditions.append(statements_of(FACTS)(self.dialect, self._schema_name).has_language)
        return select(_ONE.label("one")).where(*conditions).cte("gate").prefix_with("MATERIALIZED")

    def _old(self, is_open: ColumnElement[bool]) -> Any:
        """The fact that is there, which stays as it is until the statement ends."""
        c = self.table.c
        at_place = c.scope == text("scope"), c.key == text("key")
        old = select(c.number, *self._columns).where(*at_place, is_open)
        return old.with_for_update(key_share=True, of=self.table).cte("old")

    def _update(self, old: FromClause, is_written: ColumnElement[bool], differs: ColumnElement[bool]) -> Any:
        """What :func:`~firefly_memory.longterm.rows.updated` says."""
        c, o = self.table.c, old.c
        source, owner = text("source_episode_id"), text("owner")

        def if_named(flag: str, name: str) -> ColumnElement[Any]:
            return case((bindparam(flag, type_=Boolean), self.given(name)), else_=o[name])

        values = {
            "value": text("value"),
            "fact_type": if_named("sets_type", "fact_type"),
            "confidence": if_named("sets_confidence", "confidence"),
            "times_confirmed": o.times_confirmed + number(1),
            "source_episode_id": case((differs, source), else_=func.coalesce(source, o.source_episode_id)),
            "owner": case((differs, owner), else_=o.owner),
            "versions": o.versions + case((differs, number(1)), else_=number(0)),
            "written_by": text("written_by"),
            "valid_from": case((differs, self._superseded_at(old)), else_=o.valid_from),
            "newest": self.given("newest"),
            "searchable": self.given("searchable"),
            "words": self.given("words"),
        }
        this = update(self.table).where(c.number == old.c.number, is_written)
        return this.values(values).returning(*self._columns)

    def _leave_version(self, old: FromClause, is_written: ColumnElement[bool], differs: ColumnElement[bool]) -> Any:
        o = old.c
        row = {
            "fact_id": o.id,
            "number": o.versions + number(1),
            **{name: o[name] for name in ("value", "confidence", "source_episode_id", "owner", "valid_from")},
            "superseded_at": self._superseded_at(old),
        }
        return self.insert_version(select(*[row[name] for name in VersionRow._fields]).where(is_written, differs))

    def _superseded_at(self, old: FromClause) -> ColumnElement[Any]:
        return func.greatest(self.given("newest"), old.c.valid_from)

    def _leave_no_vector(self, old: FromClause, goes: ColumnElement[bool], kind: _Kind) -> list[Any]:
        """Those of the old value; of the embedder of the new vector, this takes its place. The vectors say of which
        embedders there are signatures, so that their key leads to each."""
        v, s, o = self.vectors.c, self.signatures.c, old.c
        other = v.embedder != text("embedder") if kind.has_vector else true()
        gone = delete(self.vectors).where(v.id == o.id, goes, other).returning(v.id, v.embedder).cte("old_vectors")
        theirs = s.scope == o.scope, s.embedder == gone.c.embedder, s.id == gone.c.id
        return [delete(self.signatures).where(*theirs).cte("old_signatures")]

    def _add_vector(self, created: FromClause, updated: FromClause) -> list[Any]:
        stored = union_all(select(created.c.id, created.c.scope), select(updated.c.id, updated.c.scope))
        rows = stored.cte("stored")
        every = []
        for bits, table, names in (("vector", self.vectors, OF_VECTOR), ("signature", self.signatures, OF_SIGNATURE)):
            given: dict[str, Any] = {"id": rows.c.id, "scope": rows.c.scope, "embedder": text("embedder")}
            given[bits] = bindparam(bits, type_=LargeBinary)
            added = insert(table).from_select(list(names), select(*[given[name] for name in names]))
            keys = [name for name in names if name != bits]
            replaced = added.on_conflict_do_update(
                index_elements=keys, set_={bits: added.excluded[bits]}, where=table.c[bits] != added.excluded[bits]
            )
            every.append(replaced.cte(f"added_{bits}"))
        return every


class PostgreSQLListStatements(ListStatements):
    def has_pattern(self) -> ColumnElement[bool]:
        both, pattern = self.table.c.searchable, text("pattern")
        newline = func.pg_catalog.chr(number(10))
        lines = [func.pg_catalog.split_part(both, newline, number(nth), type_=Text) for nth in (1, 2)]
        # An index of trigrams knows the whole column only.
        return and_(both.like(pattern), or_(*[line.like(pattern) for line in lines]))
