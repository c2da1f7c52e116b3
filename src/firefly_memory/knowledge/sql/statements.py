"""The statements of chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    delete,
    exists,
    func,
    not_,
    or_,
    select,
    update,
)

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.knowledge.log import CHUNKS, ChunkRow, checked_row, damaged_chunk
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.tombstones.sql.statements import not_erased

if TYPE_CHECKING:
    from firefly_memory.databases.sql.session import Session, Values


class KnowledgeStatements(FacetStatements):
    """What both dialects have in common."""

    by_dialect: ClassVar[Mapping[str, str]] = {
        "sqlite": "firefly_memory.knowledge.sql.sqlite:SQLiteKnowledgeStatements",
        "postgresql": "firefly_memory.knowledge.sql.postgresql:PostgreSQLKnowledgeStatements",
    }

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self.table = self.in_schema(CHUNKS.table)
        self._vectors = self.in_schema(CHUNKS.vectors)

    def write_at_once(
        self, session: Session, row: ChunkRow, vector: Vector, language: IndexLanguage, refusal: Values
    ) -> int:
        """Store one row with its vector by one statement, unless it is there, it is refused, or the index has another
        language; how many rows these were. 0 where there is no such statement."""
        return 0

    def write(self, session: Session, rows: Sequence[ChunkRow], refusal: Values) -> int:
        """Store the rows that are not there yet; how many these were. None, if their owner is refused."""
        raise NotImplementedError

    def values(self, row: ChunkRow) -> dict[str, Any]:
        """The parameters for a row."""
        instants = {name: self.dialect.instant(getattr(row, name)) for name in ("created_at", "newest")}
        return {**row._asdict(), **instants, "words": self.dialect.words(row.words)}

    def row_of(self, row: Sequence[Any]) -> ChunkRow:
        """The chunk that a row stands for."""
        found = ChunkRow(*row)
        instant = self.dialect.read_instant
        try:
            words = tuple(str.split(found.words, " "))  # type: ignore[arg-type]
            created_at, newest = instant(found.created_at), instant(found.newest)
            return checked_row(found._replace(words=words, created_at=created_at, newest=newest))
        except (AttributeError, OverflowError, TypeError, ValueError) as exc:
            raise damaged_chunk(found.id, exc) from exc

    @cached_property
    def insert(self) -> Statement:
        """One row, unless it is there."""
        return self.compiled(self.insert_one())

    def insert_one(self, *conditions: ColumnElement[bool]) -> Any:
        """:attr:`insert` before it is compiled; only under some more conditions."""
        row = {
            name: self.dialect.value_in(
                self.table.c[name], bindparam(name, type_=self.dialect.type_in(self.table.c[name]))
            )
            for name in ChunkRow._fields
        }
        source = select(*row.values()).where(*conditions, not_erased(self, 1))
        return self.dialect.insert(self.table).from_select(list(row), source).on_conflict_do_nothing()

    @cached_property
    def these(self) -> Statement:
        return self.compiled(self._rows.where(self._is_one_of_these))

    @cached_property
    def page(self) -> Statement:
        found = self._rows.where(self._id > _text("after"))
        return self.compiled(found.order_by(self._id).limit(_limit()))

    @cached_property
    def oldest(self) -> Statement:
        return self.compiled(self._oldest)

    @cached_property
    def oldest_after(self) -> Statement:
        c, moment = self.table.c, self.dialect.instant_in(_text("created_at"))
        later = or_(c.created_at > moment, and_(c.created_at == moment, self._id > _text("after")))
        return self.compiled(self._oldest.where(c.created_at >= moment, later))

    @cached_property
    def of_owner(self) -> Statement:
        c = self.table.c
        found = select(c.id).where(c.owner == _text("owner"), self._id > _text("after"))
        return self.compiled(found.order_by(self._id).limit(_limit()))

    @cached_property
    def next_collection(self) -> Statement:
        """The first collection of a space after a name: one step down the index."""
        name = self.dialect.by_code_point(self.table.c.collection)
        found = select(self.table.c.collection).where(self.table.c.space == _text("space"), name > _text("after"))
        return self.compiled(found.order_by(name).limit(_limit()))

    @cached_property
    def count(self) -> Statement:
        return self.compiled(select(func.count()).select_from(self.table))

    @cached_property
    def count_of_space(self) -> Statement:
        return self.compiled(select(func.count()).where(self.table.c.space == _text("space")))

    @cached_property
    def count_of_collection(self) -> Statement:
        return self.compiled(select(func.count()).where(*self._is_in_collection))

    @cached_property
    def some_of_collection(self) -> Statement:
        return self.compiled(select(self.table.c.id).where(*self._is_in_collection).limit(_limit()))

    @cached_property
    def some_of_source(self) -> Statement:
        c = self.table.c
        found = select(c.id).where(*self._is_in_collection, c.source == _text("source"))
        return self.compiled(found.limit(_limit()))

    @cached_property
    def delete(self) -> Statement:
        return self.compiled(delete(self.table).where(self._is_one_of_these))

    @cached_property
    def without_vector(self) -> Statement:
        found = self._rows.where(self._id > _text("after"), self._has_no_vector)
        return self.compiled(found.order_by(self._id).limit(_limit()))

    @cached_property
    def lacking(self) -> Statement:
        """The ids of those of some rows that have no vector."""
        these = self._is_one_of_these
        return self.compiled(select(self.table.c.id).where(these, self._has_no_vector))

    @cached_property
    def rewrite(self) -> Statement:
        c = self.table.c
        words = self.dialect.value_in(c.words, bindparam("words", type_=Text))
        this = update(self.table).where(self._id == _text("this_id"))
        return self.compiled(this.values(searchable=_text("searchable"), words=words))

    @property
    def _rows(self) -> Select[Any]:
        return select(*[self.dialect.value_out(self.table.c[name]) for name in ChunkRow._fields])

    @property
    def _oldest(self) -> Select[Any]:
        return self._rows.where(*self._is_in_collection).order_by(self.table.c.created_at, self._id).limit(_limit())

    @property
    def _is_in_collection(self) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        c = self.table.c
        return c.space == _text("space"), self.dialect.by_code_point(c.collection) == _text("collection")

    @property
    def _has_no_vector(self) -> ColumnElement[bool]:
        v = self._vectors.c
        return not_(exists().where(v.id == self.table.c.id, v.embedder == _text("embedder")))

    @property
    def _is_one_of_these(self) -> ColumnElement[bool]:
        return self.dialect.is_one_of_many(self._id, "ids")

    @property
    def _id(self) -> ColumnElement[str]:
        return self.dialect.by_code_point(self.table.c.id)


def _text(name: str) -> Any:
    return bindparam(name, type_=Text)


def _limit() -> Any:
    return bindparam("limit", type_=Integer)
