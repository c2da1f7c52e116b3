"""The statements that list the facts of some places, in the order of the list's index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import ColumnElement, Double, Select, Text, and_, bindparam, or_, select, tuple_, union_all

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.longterm.rows import FACTS, USERS, FactPosition, FactRow, Filters
from firefly_memory.longterm.sql.by_shape import ByShape
from firefly_memory.longterm.sql.parameters import limit, text
from firefly_memory.longterm.sql.statements import without_words, word_of_root

_IN_ORDER = ("number", "confidence", "newest", "id")


class Shape(NamedTuple):
    """What a statement depends on beside its parameters."""

    places: int
    after: bool
    pattern: bool
    types: bool
    min_confidence: bool
    person: int | None
    """The place whose person counts as the one for whom they stand."""


class ListStatements(FacetStatements):
    """One statement for each shape."""

    by_dialect: ClassVar[Mapping[str, str]] = {
        "sqlite": "firefly_memory.longterm.sql.sqlite:SQLiteListStatements",
        "postgresql": "firefly_memory.longterm.sql.postgresql:PostgreSQLListStatements",
    }

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self.table = self.in_schema(FACTS.table)
        self.people = self.in_schema(USERS)
        self._made: ByShape[Shape] = ByShape(lambda shape: self.compiled(self._made_of(shape)))

    def has_pattern(self) -> ColumnElement[bool]:
        """Whether the searchable key, or the searchable value, fits the parameter ``pattern`` of LIKE."""
        raise NotImplementedError

    def asked(
        self, words: Sequence[str], filters: Filters, most: int, after: FactPosition | None, person: str | None = None
    ) -> tuple[Statement, dict[str, Any]]:
        """The statement for the facts of some places, and its parameters."""
        values: dict[str, Any] = {f"scope_{number}": word for number, word in enumerate(words)}
        values["limit"] = most
        if after is not None:
            newest = self.dialect.instant(after.newest)
            values |= {"after_confidence": after.confidence, "after_newest": newest, "after_id": after.id}
        if filters.pattern:
            values["pattern"] = f"%{'%'.join(map(_literally, filters.pattern))}%"
        if filters.types is not None:
            values["types"] = self.dialect.texts(filters.types)
        if filters.min_confidence is not None:
            values["min_confidence"] = filters.min_confidence
        shape = Shape(
            places=len(words),
            after=after is not None,
            pattern=bool(filters.pattern),
            types=filters.types is not None,
            min_confidence=filters.min_confidence is not None,
            person=words.index(person) if person in words else None,
        )
        return self._made[shape], values

    @cached_property
    def ids(self) -> Statement:
        """The ids of all facts of any number of places."""
        c = self.table.c
        return self.compiled(select(c.id).where(self.dialect.is_one_of_many(c.scope, "words")))

    def _made_of(self, shape: Shape) -> Select[Any]:
        """A part for each place, which the index gives in order and no longer than the list; then all of them."""
        rows = without_words([self.dialect.value_out(self.table.c[name]) for name in FactRow._fields])
        if shape.places == 1:
            return self._part(rows, 0, shape)
        c = self.table.c
        keys = [c[name] for name in _IN_ORDER]
        parts = [self._part(keys, place, shape) for place in range(shape.places)]
        found = union_all(*[select(part.subquery(f"of_{place}")) for place, part in enumerate(parts)]).subquery("found")
        first = select(found.c.number, found.c.confidence, found.c.newest, found.c.id)
        these = self._in_order(first, found).limit(limit()).subquery("these")
        return self._in_order(select(*rows).select_from(these.join(self.table, c.number == these.c.number)), these)

    def _part(self, columns: Sequence[ColumnElement[Any]], place: int, shape: Shape) -> Select[Any]:
        """The facts of one place, no more than the list has."""
        c = self.table.c
        word = text(f"scope_{place}")
        if place == shape.person:
            word = word_of_root(self.people, word)
        found = self._in_order(select(*columns).where(c.scope == word), self.table).limit(limit())
        if shape.after:
            found = found.where(self._is_after)
        if shape.min_confidence:
            found = found.where(c.confidence >= bindparam("min_confidence", type_=Double))
        if shape.types:
            found = found.where(self.dialect.is_one_of(c.fact_type, "types"))
        return found.where(self.has_pattern()) if shape.pattern else found

    def _in_order(self, found: Select[Any], of: Any) -> Select[Any]:
        by_id = self.dialect.by_code_point(of.c.id)
        return found.order_by(of.c.confidence.desc(), of.c.newest.desc(), by_id)

    @property
    def _is_after(self) -> ColumnElement[bool]:
        """Two columns lead to the position in the index; of the facts that are equal in both, the id decides."""
        c = self.table.c
        position = (
            bindparam("after_confidence", type_=Double),
            self.dialect.instant_in(bindparam("after_newest", type_=Text)),
        )
        reached = tuple_(c.confidence, c.newest) <= tuple_(*position)
        passed = tuple_(c.confidence, c.newest) < tuple_(*position)
        return and_(reached, or_(passed, self.dialect.by_code_point(c.id) > text("after_id")))


def _literally(word: str) -> str:
    """A word of a pattern of LIKE."""
    for sign in ("\\", "%", "_"):
        word = word.replace(sign, "\\" + sign)
    return word
