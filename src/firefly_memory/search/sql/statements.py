"""The statements of an index, built from the facet's table. What the dialects say otherwise is in ``engines``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, Protocol

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    FromClause,
    Insert,
    Integer,
    LargeBinary,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
    union,
)

from firefly_memory import clock
from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.dialect import SQLDialect
from firefly_memory.databases.sql.statements import FacetStatements
from firefly_memory.facets import load_name
from firefly_memory.search.filters import Comparison, Conditions, Filter
from firefly_memory.search.index import Subject
from firefly_memory.search.neighbours import REACH
from firefly_memory.search.sql.tables import LANGUAGES

CANDIDATE = ("id", "scope", "who", "group_id", "position")
"""The columns that a candidate is made of, after its words or their number."""

OF_VECTOR = ("id", "embedder", "vector")
OF_SIGNATURE = ("scope", "embedder", "id", "signature")
BITS = ("vector", "signature")
"""The columns of bytes."""

_ENGINES = {
    "sqlite": "firefly_memory.search.sql.sqlite:ENGINE",
    "postgresql": "firefly_memory.search.sql.postgresql:ENGINE",
}


class Engine(Protocol):
    """How one dialect finds the rows that have a word."""

    def counts(self, of: IndexStatements) -> Select[Any]:
        """Each word of the parameter ``words``, and how many rows of ``scopes`` have it, or about how many."""

    def best(self, of: IndexStatements) -> Select[Any]:
        """The ids of the rows of ``scopes`` with the largest sums of the weights of their words, up to ``limit``."""

    def words(
        self, of: IndexStatements, scopes: Sequence[str], words: Sequence[str], most: int | None
    ) -> dict[str, Any]:
        """The parameters of :meth:`counts`."""

    def weighted(
        self, of: IndexStatements, scopes: Sequence[str], words: Sequence[str], weights: Sequence[int]
    ) -> dict[str, Any]:
        """The parameters of :meth:`best`."""

    def many_beside(self, of: IndexStatements, table: Table, names: Sequence[str]) -> Insert | None:
        """:meth:`IndexStatements.beside` for several rows: the array ``ids``, and one after the other in ``bits`` what
        each gets, of the same ``size``. ``None`` where rows go one by one."""

    def check_words(self, of: IndexStatements) -> Insert | None:
        """Fails where the full-text table has other words than the rows; ``None`` where there is no such table."""

    def rebuild_words(self, of: IndexStatements) -> Insert | None:
        """Makes the full-text table again."""

    def is_out_of_step(self, error: BaseException) -> bool:
        """Whether :meth:`check_words` has failed for that reason."""


class IndexStatements(FacetStatements):
    """The statements of the index of one subject, for questions with the same filters."""

    subject: ClassVar[Subject]
    filters: ClassVar[tuple[Filter, ...]] = ()

    def __init__(self, dialect: SQLDialect, schema_name: str | None) -> None:
        super().__init__(dialect, schema_name)
        self.table = self.in_schema(self.subject.table)
        self.languages = self.in_schema(LANGUAGES)
        self.engine: Engine = load_name(_ENGINES[dialect.name])

    @cached_property
    def vectors(self) -> Table:
        return self.in_schema(self.subject.vectors)

    @cached_property
    def signatures(self) -> Table:
        return self.in_schema(self.subject.signatures)

    @cached_property
    def counts(self) -> Statement:
        return self.compiled(self.engine.counts(self))

    @cached_property
    def best(self) -> Statement:
        return self.compiled(self.engine.best(self))

    @cached_property
    def around(self) -> Statement:
        """Some rows of the scopes with their neighbours."""
        return self._around(self.dialect.value_out(self.table.c.words))

    @cached_property
    def around_with_lengths(self) -> Statement:
        """The same, with the numbers of their words."""
        return self._around(self.dialect.words_count(self.table.c.words))

    def _around(self, words: ColumnElement[Any]) -> Statement:
        c = self.table.c
        wanted = self._is_one_of_these, *self.is_wanted(self.table)
        given = select(c.number, c.scope, c.group_id, c.position).where(*wanted).cte("given")
        # First by the ids: a planner that has not heard of a new scope yet would read all of it.
        these = given.prefix_with("MATERIALIZED", dialect="postgresql")
        found = select(these).where(self.dialect.is_one_of(these.c.scope, "scopes")).cte("found")
        near = self.table.alias("near")
        beside = and_(
            near.c.scope == found.c.scope,
            near.c.group_id == found.c.group_id,
            near.c.position.between(found.c.position - _number(REACH), found.c.position + _number(REACH)),
            *self.is_wanted(near),
        )
        numbers = union(select(found.c.number), select(near.c.number).select_from(found.join(near, beside)))
        columns = [words, *[c[name] for name in CANDIDATE]]
        return self.compiled(select(*columns).where(c.number.in_(numbers)))

    @cached_property
    def containing(self) -> Statement:
        c = self.table.c
        has = self.dialect.contains(c.searchable, _text("wanted"))
        found = select(c.id).where(self.is_in_scope, has, *self.is_wanted(self.table))
        return self.compiled(found.order_by(c.newest.desc(), self.dialect.by_code_point(c.id)).limit(_limit()))

    @cached_property
    def people(self) -> Statement:
        who, live = self.table.c.who, self.is_wanted(self.table)
        return self.compiled(select(who).distinct().where(self.is_in_scope, who.is_not(None), *live).limit(_limit()))

    @cached_property
    def signatures_of(self) -> Statement:
        c = self.signatures.c
        found = select(c.id, c.signature).where(
            self.dialect.is_one_of(c.scope, "scopes"), c.embedder == _text("embedder")
        )
        if self.filters:
            found = found.where(c.id.in_(self.ids_wanted))
        return self.compiled(found.limit(_limit()))

    @cached_property
    def vectors_of(self) -> Statement:
        c = self.vectors.c
        found = select(c.id, c.vector).where(self.dialect.is_one_of_many(c.id, "ids"), c.embedder == _text("embedder"))
        return self.compiled(found)

    @cached_property
    def add_vector(self) -> Statement:
        """For a row that is there, and stays until the transaction ends."""
        return self.compiled(self._beside(self.vectors, OF_VECTOR))

    @cached_property
    def add_signature(self) -> Statement:
        return self.compiled(self._beside(self.signatures, OF_SIGNATURE))

    @cached_property
    def locked(self) -> Statement:
        """The ids and scopes of some rows, which stay as they are until the transaction ends."""
        c = self.table.c
        found = select(c.id, c.scope).where(self._is_one_of_these)
        return self.compiled(found.order_by(c.id).with_for_update())

    @cached_property
    def held(self) -> Statement:
        """The ids of some rows, which nobody deletes until the transaction ends."""
        found = select(self.table.c.id).where(self._is_one_of_these).order_by(self.table.c.id)
        return self.compiled(found.with_for_update(read=True, key_share=True))

    @cached_property
    def delete_vectors(self) -> Statement:
        return self.compiled(delete(self.vectors).where(self.dialect.is_one_of_many(self.vectors.c.id, "ids")))

    @cached_property
    def delete_signatures(self) -> Statement:
        """Of some ids in some scopes, which lead to them."""
        c = self.signatures.c
        these = self.dialect.is_one_of_many(c.id, "ids"), self.dialect.is_one_of(c.scope, "scopes")
        return self.compiled(delete(self.signatures).where(*these))

    @cached_property
    def language(self) -> Statement:
        c = self.languages.c
        return self.compiled(select(c.language, c.form).where(c.subject == _text("subject")))

    @property
    def has_language(self) -> ColumnElement[bool]:
        """Whether the words of the index are made by the parameters ``language`` and ``form``."""
        c = self.languages.c
        form = bindparam("form", type_=BigInteger)
        return exists().where(c.subject == _text("subject"), c.language == _text("language"), c.form == form)

    @cached_property
    def set_language(self) -> Statement:
        row = {"subject": _text("subject"), "language": _text("language"), "form": bindparam("form", type_=BigInteger)}
        return self.compiled(self.dialect.insert(self.languages).values(row).on_conflict_do_nothing())

    @cached_property
    def change_language(self) -> Statement:
        row = {"subject": _text("subject"), "language": _text("language"), "form": bindparam("form", type_=BigInteger)}
        insert = self.dialect.insert(self.languages).values(row)
        changed = {name: insert.excluded[name] for name in ("language", "form")}
        return self.compiled(insert.on_conflict_do_update(index_elements=[self.languages.c.subject], set_=changed))

    @cached_property
    def vectors_by_embedder(self) -> Statement:
        embedder = self.signatures.c.embedder
        return self.compiled(select(embedder, func.count()).group_by(embedder))

    @cached_property
    def having_vector(self) -> Statement:
        """The first rows that have a vector of an embedder."""
        c = self.vectors.c
        found = select(c.id).where(c.embedder == _text("embedder"), c.id > _text("after"))
        return self.compiled(found.order_by(c.id).limit(_limit()))

    @cached_property
    def delete_vectors_of(self) -> Statement:
        """Of one embedder."""
        c = self.vectors.c
        these = self.dialect.is_one_of_many(c.id, "ids"), c.embedder == _text("embedder")
        return self.compiled(delete(self.vectors).where(*these))

    @cached_property
    def delete_signatures_of(self) -> Statement:
        c = self.signatures.c
        these = self.dialect.is_one_of_many(c.id, "ids"), self.dialect.is_one_of(c.scope, "scopes")
        return self.compiled(delete(self.signatures).where(*these, c.embedder == _text("embedder")))

    @cached_property
    def check_words(self) -> Statement | None:
        check = self.engine.check_words(self)
        return None if check is None else self.compiled(check)

    @cached_property
    def rebuild_words(self) -> Statement | None:
        rebuild = self.engine.rebuild_words(self)
        return None if rebuild is None else self.compiled(rebuild)

    @cached_property
    def stray_vectors(self) -> Statement:
        return self.compiled(select(func.count()).select_from(self.vectors).where(self._is_stray(self.vectors)))

    @cached_property
    def stray_signatures(self) -> Statement:
        stray = self._is_stray(self.signatures)
        return self.compiled(select(func.count()).select_from(self.signatures).where(stray))

    @cached_property
    def delete_stray_vectors(self) -> Statement:
        return self.compiled(delete(self.vectors).where(self._is_stray(self.vectors)))

    @cached_property
    def delete_stray_signatures(self) -> Statement:
        return self.compiled(delete(self.signatures).where(self._is_stray(self.signatures)))

    def _is_stray(self, table: Any) -> ColumnElement[bool]:
        return not_(exists().where(self.dialect.by_code_point(self.table.c.id) == table.c.id))

    @cached_property
    def add_vectors(self) -> Statement | None:
        many = self.engine.many_beside(self, self.vectors, OF_VECTOR)
        return None if many is None else self.compiled(many)

    @cached_property
    def add_signatures(self) -> Statement | None:
        many = self.engine.many_beside(self, self.signatures, OF_SIGNATURE)
        return None if many is None else self.compiled(many)

    def _beside(self, table: Table, names: Sequence[str]) -> Insert:
        this: ColumnElement[str] = _text("this_id")
        return self.beside(table, names, this, {each: bindparam(each, type_=LargeBinary) for each in BITS})

    def beside(
        self, table: Table, names: Sequence[str], this: ColumnElement[str], bits: Mapping[str, ColumnElement[Any]]
    ) -> Insert:
        """Inserts into a table of vectors what belongs to rows that are there, unless they have it. The rows are locked
        in the order of :attr:`locked`, whatever the plan is: a deletion at the same moment waits, and no more."""
        c = self.table.c
        given = {"id": c.id, "scope": c.scope, "embedder": _text("embedder"), **bits}
        rows = select(*[given[name] for name in names]).where(self.dialect.by_code_point(c.id) == this)
        locked = rows.order_by(c.id).with_for_update(read=True, key_share=True, of=self.table)
        added: Insert = self.dialect.insert(table).from_select(list(names), locked).on_conflict_do_nothing()
        return added

    @property
    def ids_wanted(self) -> Select[Any]:
        """The ids of all rows of the scopes that are wanted."""
        return select(self.table.c.id).where(self.is_in_scope, *self.is_wanted(self.table))

    def is_wanted(self, table: FromClause) -> list[ColumnElement[bool]]:
        """The conditions that a row passes the filters, and has not expired, where rows do."""
        passes = [self._passes(table.c[each.name], each) for each in self.filters]
        if self.subject.expires is None:
            return passes
        until = table.c[self.subject.expires]
        return [*passes, or_(until.is_(None), until > self.dialect.instant_in(_text("now")))]

    def wanted(self, conditions: Conditions = ()) -> dict[str, Any]:
        """The parameters of :meth:`is_wanted`."""
        values = {} if self.subject.expires is None else {"now": self.dialect.instant(clock.now())}
        for each, value in conditions:
            is_texts = each.comparison is Comparison.ONE_OF
            values[_parameter(each)] = self.dialect.texts(value) if is_texts else value
        return values

    def _passes(self, column: ColumnElement[Any], asked: Filter) -> ColumnElement[bool]:
        name = _parameter(asked)
        if asked.comparison is Comparison.ONE_OF:
            return self.dialect.is_one_of(column, name)
        return column >= bindparam(name, type_=Double)

    @property
    def is_in_scope(self) -> ColumnElement[bool]:
        return self.dialect.is_one_of(self.table.c.scope, "scopes")

    @property
    def _is_one_of_these(self) -> ColumnElement[bool]:
        return self.dialect.is_one_of_many(self.dialect.by_code_point(self.table.c.id), "ids")


@cache
def statements_of(subject: Subject, filters: tuple[Filter, ...] = ()) -> type[IndexStatements]:
    """The statements of the index of a subject, for questions with these filters."""
    members = {"subject": subject, "filters": filters}
    return type(f"{subject.kind.title()}IndexStatements", (IndexStatements,), members)


def _parameter(asked: Filter) -> str:
    return f"filter_{asked.name}"


def _text(name: str) -> Any:
    return bindparam(name, type_=Text)


def _limit() -> Any:
    return bindparam("limit", type_=Integer)


def _number(number: int) -> Any:
    return literal_column(str(number), BigInteger)
