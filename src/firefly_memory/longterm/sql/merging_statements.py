"""The statements by which everything of one person becomes another one's."""

from __future__ import annotations

from functools import cached_property

from sqlalchemy import ColumnElement, and_, exists, or_, select, update

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.longterm.sql.parameters import limit, text
from firefly_memory.longterm.sql.people_statements import PeopleStatements
from firefly_memory.longterm.sql.statements import FactStatements


class MergingStatements(FactStatements):
    """Those on facts. Parameters are the words ``source`` and ``target``, and the ids ``old_owner`` and
    ``new_owner``."""

    by_dialect = {}  # noqa: RUF012 - the dialects make no difference

    @cached_property
    def locked(self) -> Statement:
        """The places and ids of the facts of both people, in the order in which everybody locks several facts."""
        c = self.table.c
        theirs = or_(c.scope.in_([text("source"), text("target")]), self._is_owned)
        return self.compiled(select(c.scope, c.id).where(theirs).order_by(c.id).with_for_update())

    @cached_property
    def some_of_source(self) -> Statement:
        return self.compiled(self._rows.where(self.table.c.scope == text("source")).limit(limit()))

    @cached_property
    def same_keys(self) -> Statement:
        """The target's facts with some keys."""
        c = self.table.c
        return self.compiled(self._rows.where(c.scope == text("target"), self.dialect.is_one_of_many(c.key, "keys")))

    @cached_property
    def give_facts(self) -> Statement:
        """Some facts of the source's in other places."""
        these = self._is_one_of_these, self._is_owned
        return self.compiled(update(self.table).where(*these).values(owner=text("new_owner")))

    @cached_property
    def give_versions(self) -> Statement:
        v, c = self.versions_table.c, self.table.c
        of_space = exists(select(c.id).where(self._id == self._code(v.fact_id), c.space == text("space")))
        given = update(self.versions_table).where(v.owner == text("old_owner"), of_space)
        return self.compiled(given.values(owner=text("new_owner")))

    @cached_property
    def move_signatures(self) -> Statement:
        """Those of facts that have moved."""
        s, c = self.signatures.c, self.table.c
        moved = exists(select(c.id).where(self._id == s.id, c.scope == text("target")))
        return self.compiled(
            update(self.signatures).where(s.scope == text("source"), moved).values(scope=text("target"))
        )

    @property
    def _is_owned(self) -> ColumnElement[bool]:
        c = self.table.c
        return and_(c.owner == text("old_owner"), c.space == text("space"))


class MergedPeopleStatements(PeopleStatements):
    @cached_property
    def follow(self) -> Statement:
        """All people who stood for the source stand for the target."""
        c = self.table.c
        values = {
            "stands_for": text("target"),
            "merged_into_id": text("target_id"),
            "updated_at": self.given("updated_at"),
        }
        others = update(self.table).where(c.stands_for == text("source"), c.word != text("source"))
        return self.compiled(others.values(values))
