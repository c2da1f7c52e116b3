"""Facts in SQLite: one writer at a time, so the rule of an update is asked between two statements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, insert, literal_column, or_, select, update

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.session import Session
from firefly_memory.longterm.rows import FACTS, FactRow, FactWrite, Outcome, Written, updated
from firefly_memory.longterm.sql.list_statements import ListStatements
from firefly_memory.longterm.sql.parameters import number, text
from firefly_memory.longterm.sql.people_statements import PeopleStatements
from firefly_memory.longterm.sql.statements import FactStatements, words_of_people
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.sql.index import write_vectors
from firefly_memory.search.sql.languages import agree_on_language
from firefly_memory.tombstones.sql.refusal import refuse_erased


class SQLiteFactStatements(FactStatements):
    def write(self, session: Session, writes: Sequence[FactWrite], language: IndexLanguage | None) -> list[Written]:
        with session.transaction():
            # Nobody else writes until it ends, so one look for all is enough.
            identities = dict.fromkeys(identity for each in writes for identity in each.row.identities)
            refuse_erased(session, "set_facts", list(identities))
            session.statements(PeopleStatements).hold(session, words_of_people(writes))
            if language is not None:
                agree_on_language(session, FACTS, language)
            return [self._write(session, each) for each in writes]

    def _write(self, session: Session, write: FactWrite) -> Written:
        row = write.row
        found = session.fetch(self.at_place, {"scope": row.scope, "key": row.key})
        if not found:
            session.execute(self.add, self.values(row))
            outcome: Outcome = "created"
        else:
            old = self.row_of(found[0])
            if old.written_by == row.written_by:  # by this write, whose reply was lost
                return Written(old, "created" if old.id == row.id else "updated")
            if not write.overwrite:
                return Written(old, "skipped")
            row, version = updated(old, write)
            values = {**self.values(row), "this_id": row.id}
            if version is None:
                session.execute(self.replace, values)
            else:
                session.execute(self.add_version, self.version_values(version))
                session.execute(self.delete_signatures_of, {"this_id": row.id, "scope": row.scope})
                session.execute(self.delete_vectors_of, {"this_id": row.id})
                session.execute(self.replace_words, values)
            outcome = "updated"
        if write.vector is not None:
            write_vectors(session, FACTS, {row.id: write.vector})
        return Written(row, outcome)

    @cached_property
    def add(self) -> Statement:
        """A fact whose place has no such key."""
        return self.compiled(insert(self.table).values({name: self.given(name) for name in FactRow._fields}))

    def _count_access(self, shape: tuple[bool, ...]) -> Any:
        c = self.table.c
        this = update(self.table).where(c.number == self.first_seen(shape, c.number).scalar_subquery())
        counted = this.values(access_count=c.access_count + number(1), last_accessed=text("now"))
        return counted.returning(*self.columns_shown(self.table))

    @cached_property
    def delete_vectors_of(self) -> Statement:
        """All vectors of one fact."""
        return self.compiled(delete(self.vectors).where(self.vectors.c.id == text("this_id")))

    @cached_property
    def delete_signatures_of(self) -> Statement:
        """All signatures of one fact. Its vectors say of which embedders, so that its key leads to each."""
        s, v = self.signatures.c, self.vectors.c
        embedders = select(v.embedder).where(v.id == text("this_id"))
        these = s.scope == text("scope"), s.embedder.in_(embedders), s.id == text("this_id")
        return self.compiled(delete(self.signatures).where(*these))


class SQLiteListStatements(ListStatements):
    def has_pattern(self) -> ColumnElement[bool]:
        both = self.table.c.searchable
        end = func.instr(both, literal_column("char(10)"))
        lines = func.substr(both, number(1), end - number(1)), func.substr(both, end + number(1))
        # Most facts have the words on neither line, and one look tells.
        return and_(*[or_(*[each.like(text("pattern"), escape="\\") for each in some]) for some in ((both,), lines)])
