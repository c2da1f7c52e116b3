"""The nearest vectors by pgvector: what a search asks where it cannot compare every vector.

Each question looks whether the column and its index are there, in the transaction that uses them. So nothing is kept
that somebody could take away, and processes that run need not be told.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from sys import byteorder
from typing import Any

from sqlalchemy import ColumnElement, Double, Integer, Select, Text, bindparam, cast, func, literal_column, select, true
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import UserDefinedType

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.postgresql.arrays import array_in
from firefly_memory.databases.sql.postgresql.identifiers import quoted
from firefly_memory.databases.sql.session import Session
from firefly_memory.search.filters import Conditions, Filter, filters_in
from firefly_memory.search.index import Nearest, Subject
from firefly_memory.search.sql.accelerators.extensions import version_number
from firefly_memory.search.sql.accelerators.pgvector import VectorColumn, column_name, columns_of
from firefly_memory.search.sql.statements import IndexStatements

_SAMPLE = 1_000
"""So many signatures of each scope say what is common in it."""

_SETTINGS = {
    "enable_sort": "off",  # else a planner could compare the vectors one by one
    "hnsw.ef_search": "400",
    # The index goes on where rows of other scopes were among the nearest.
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.max_scan_tuples": "40000",
}
_USUAL = {"hnsw.ef_search": "40", "hnsw.iterative_scan": "off", "hnsw.max_scan_tuples": "20000"}
"""What a session has in which nobody has asked for vectors yet."""

_OF_ITERATION = {"hnsw.iterative_scan", "hnsw.max_scan_tuples"}
_ITERATES = (0, 8)
"""The version of pgvector from which on an index goes on."""


class NearestStatements(IndexStatements):
    """The statements over one subject. What names a column or a schema is compiled once for each."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._nearest: dict[VectorColumn, Statement] = {}
        self._nearest_of_all: dict[VectorColumn, Statement] = {}
        self._settings: dict[frozenset[str], Statement] = {}

    @cached_property
    def column(self) -> Statement:
        """The :class:`VectorColumn` with the name ``column``, if it is there."""
        of_embedder = literal_column("attname") == bindparam("column", type_=Text)
        return self.compiled(columns_of(self.subject, str(self._schema_name)).where(of_embedder))

    def nearest(self, found: VectorColumn) -> Statement:
        """The ids of the rows of the scopes whose vectors are nearest to ``question``."""
        made = self._nearest.get(found)
        if made is None:
            made = self._nearest[found] = self.compiled(self._nearest_by(found))
        return made

    def nearest_of_all(self, found: VectorColumn) -> Statement:
        """The same, where each vector of the scopes is compared."""
        made = self._nearest_of_all.get(found)
        if made is None:
            c, of_scope = self.vectors.c, self.signatures.c
            these = select(of_scope.id).where(
                self.dialect.is_one_of(of_scope.scope, "scopes"), of_scope.embedder == bindparam("embedder", type_=Text)
            )
            wanted = c.id.in_(these), c.embedder == bindparam("embedder", type_=Text), _column_of(found).is_not(None)
            # Plus zero, so that the index is left aside.
            distance = _distance(found) + cast(literal_column("0"), Double)
            some = [self._is_in_scope_and_wanted(c.id)] if self.filters or self.subject.expires is not None else []
            query = select(c.id).where(*wanted, *some).order_by(distance)
            made = self._nearest_of_all[found] = self.compiled(query.limit(bindparam("limit", type_=Integer)))
        return made

    def _nearest_by(self, found: VectorColumn) -> Select[Any]:
        c = self.vectors.c
        # Asked for each vector that the index gives, one by one: a join would read the whole scope first.
        query = select(c.id).where(self._is_in_scope_and_wanted(c.id)).order_by(_distance(found))
        return query.limit(bindparam("limit", type_=Integer))

    def _is_in_scope_and_wanted(self, vector_id: Any) -> Any:
        rows = self.table
        of_row = self.dialect.by_code_point(rows.c.id) == vector_id
        scope = select(rows.c.scope).where(of_row, *self.is_wanted(rows)).scalar_subquery()
        return self.dialect.is_one_of(scope, "scopes")

    @cached_property
    def sample(self) -> Statement:
        """Some signatures of each scope. Ids are hashes, so that the first ones are any."""
        c = self.signatures.c
        scopes = func.pg_catalog.unnest(array_in("scopes", Text())).table_valued("scope").render_derived(name="asked")
        wanted = c.scope == scopes.c.scope, c.embedder == bindparam("embedder", type_=Text)
        some = select(c.signature).where(*wanted).limit(bindparam("limit", type_=Integer)).lateral("some")
        return self.compiled(select(some.c.signature).select_from(scopes.join(some, true())))

    def settings(self, names: frozenset[str]) -> Statement:
        """Reads the settings, and then gives them other values, until the transaction ends."""
        made = self._settings.get(names)
        if made is None:
            in_order = sorted(names)
            before = [func.pg_catalog.current_setting(name, true()) for name in in_order]
            after = [
                func.pg_catalog.set_config(name, bindparam(f"value_{number}", type_=Text), true())
                for number, name in enumerate(in_order)
            ]
            made = self._settings[names] = self.compiled(select(*before, *after))
        return made


class _OfExtension(UserDefinedType[str]):
    cache_ok = True

    def __init__(self, schema: str, definition: str) -> None:
        self.schema = schema
        self.definition = definition


def _column_of(found: VectorColumn) -> ColumnElement[Any]:
    return literal_column(found.name)


def _distance(found: VectorColumn) -> Any:
    """Of a vector and that of the parameter ``question``."""
    kind = _OfExtension(found.extension, f"{found.type}({found.dimensions})")
    operator = f"OPERATOR({quoted(found.extension)}.<=>)"
    return _column_of(found).op(operator, return_type=Double())(cast(bindparam("question", type_=Text), kind))


@compiles(_OfExtension)
def _written(kind: _OfExtension, compiler: Any, **_: Any) -> str:
    schema = quoted(kind.schema)
    percents = compiler.dialect.identifier_preparer._double_percents  # noqa: SLF001 - nothing public tells
    return f"{schema.replace('%', '%%') if percents else schema}.{kind.definition}"


@cache
def nearest_statements_of(subject: Subject, filters: tuple[Filter, ...] = ()) -> type[NearestStatements]:
    """The statements of one subject, for questions with these filters."""
    members = {"subject": subject, "filters": filters}
    return type(f"{subject.kind.title()}NearestStatements", (NearestStatements,), members)


class _PgVector:
    def is_there(self, session: Session, subject: Subject, embedder: str) -> bool:
        return _column(session, session.statements(nearest_statements_of(subject)), embedder) is not None

    def nearest(
        self,
        session: Session,
        subject: Subject,
        scopes: Sequence[str],
        embedder: str,
        vector: bytes,
        most: int,
        conditions: Conditions,
    ) -> Nearest | None:
        statements = session.statements(nearest_statements_of(subject, filters_in(conditions)))
        asked = session.dialect.texts(scopes)
        with session.transaction():
            found = _column(session, statements, embedder)
            if found is None:
                return None
            ids: list[str] = []
            if found.dimensions * 4 == len(vector):  # others are refused by their signatures
                values = {"scopes": asked, "question": _numbers(vector), "limit": most}
                values |= statements.wanted(conditions)
                with _settings(session, statements, found):
                    ids = [row[0] for row in session.fetch(statements.nearest(found), values)]
                if len(ids) < most:  # few of what the index gives are in the scopes, or it does not lead to them
                    of_all = statements.nearest_of_all(found)
                    ids = [row[0] for row in session.fetch(of_all, {**values, "embedder": embedder})]
            sample = session.fetch(statements.sample, {"scopes": asked, "embedder": embedder, "limit": _SAMPLE})
        return Nearest(ids, [row[0] for row in sample])


PGVECTOR = _PgVector()


def _column(session: Session, statements: NearestStatements, embedder: str) -> VectorColumn | None:
    for row in session.fetch(statements.column, {"column": column_name(embedder)}):
        found = VectorColumn(*row)
        if found.embedder == embedder and not found.problem and found.usable:
            return found
    return None


@contextmanager
def _settings(session: Session, statements: NearestStatements, found: VectorColumn) -> Iterator[None]:
    """The transaction may be the caller's, so the settings are put back; after an error the database does that."""
    names = frozenset(_SETTINGS)
    if version_number(found.version) < _ITERATES:
        names -= _OF_ITERATION
    in_order, statement = sorted(names), statements.settings(names)
    (before,) = session.fetch(statement, _values(in_order, _SETTINGS))
    yield
    usual = dict(zip(in_order, before[: len(in_order)], strict=True))
    session.fetch(statement, _values(in_order, {name: value or _USUAL[name] for name, value in usual.items()}))


def _values(names: Sequence[str], settings: Mapping[str, str]) -> dict[str, str]:
    return {f"value_{number}": settings[name] for number, name in enumerate(names)}


def _numbers(vector: bytes) -> str:
    """A vector as pgvector reads it."""
    numbers = array("f", vector)
    if byteorder == "big":
        numbers.byteswap()
    length = sum(each * each for each in numbers) ** 0.5 or 1.0  # a half vector has room for small numbers only
    return "[" + ",".join([f"{each / length:.7g}" for each in numbers]) + "]"
