"""Words in PostgreSQL: an array with an inverted index (GIN), which finds a scope and a word in one scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Insert,
    Integer,
    LargeBinary,
    Select,
    Table,
    Text,
    bindparam,
    case,
    cast,
    desc,
    func,
    literal_column,
    select,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import array, insert

from firefly_memory.databases.sql.postgresql.arrays import array_in, array_text
from firefly_memory.search.sql.statements import BITS, OF_SIGNATURE, OF_VECTOR, IndexStatements

_ONE = literal_column("1", BigInteger)
_EVERY = 2**62


class _Engine:
    def counts(self, of: IndexStatements) -> Select[Any]:
        """Rows come in the order in which they stand in the table. So of a word that has more than ``most``, the number
        of the last one counted tells about how many there are in the whole table."""
        arrays = array_in("words", Text()), array_in("mosts", BigInteger())
        words = func.unnest(*arrays).table_valued("word", "most").render_derived(name="asked")
        c = of.table.c
        some = select(c.number).where(*_has(of, words.c.word)).limit(words.c.most).correlate(words).subquery("some")
        columns = func.count().label("count"), func.max(some.c.number).label("last")
        counted = select(*columns).select_from(some).lateral("counted")
        first, last = (select(find(c.number)).scalar_subquery() for find in (func.min, func.max))
        every = cast(last - first + _ONE, Double) / (counted.c.last - first + _ONE)
        estimate = cast(func.pg_catalog.ceil(counted.c.count * func.greatest(every, _ONE)), BigInteger)
        about = case((counted.c.count < words.c.most, counted.c.count), else_=estimate)
        return select(words.c.word, about).select_from(words.join(counted, literal_column("true")))

    def best(self, of: IndexStatements) -> Select[Any]:
        arrays = array_in("words", Text()), array_in("weights", BigInteger())
        words = func.unnest(*arrays).table_valued("word", "weight").render_derived(name="asked")
        c = of.table.c
        wanted = *_has(of, words.c.word), *of.is_wanted(of.table)
        rows = select(c.number, c.id).where(*wanted).correlate(words).lateral("rows")
        weight = func.sum(words.c.weight)
        found = select(rows.c.id).select_from(words.join(rows, literal_column("true")))
        in_order = found.group_by(rows.c.number, rows.c.id).order_by(desc(weight), of.dialect.by_code_point(rows.c.id))
        return in_order.limit(bindparam("limit", type_=BigInteger))

    def words(
        self, _: IndexStatements, scopes: Sequence[str], words: Sequence[str], most: int | None
    ) -> dict[str, Any]:
        mosts = [_EVERY if most is None or word in scopes else most for word in words]
        return {"scopes": array_text(scopes), "words": array_text(words), "mosts": array_text(mosts)}

    def weighted(
        self, _: IndexStatements, scopes: Sequence[str], words: Sequence[str], weights: Sequence[int]
    ) -> dict[str, Any]:
        return {"scopes": array_text(scopes), "words": array_text(words), "weights": array_text(weights)}

    def many_beside(self, of: IndexStatements, table: Table, names: Sequence[str]) -> Insert:
        """The bits of all rows are one value, which is cut here: an array of them takes twice the time."""
        ids = func.pg_catalog.unnest(array_in("ids", Text()))
        given = ids.table_valued("id", with_ordinality="place").render_derived(name="given")
        size = bindparam("size", type_=Integer)
        first = cast((type_coerce(given.c.place, BigInteger) - _ONE) * size + _ONE, Integer)
        bits = func.pg_catalog.substring(bindparam("bits", type_=LargeBinary), first, size)
        return of.beside(table, names, given.c.id, dict.fromkeys(BITS, bits))

    def check_words(self, _: IndexStatements) -> None:
        return None  # the index is one of the table's own

    def rebuild_words(self, _: IndexStatements) -> None:
        return None

    def is_out_of_step(self, _: BaseException) -> bool:
        return False


def insert_with_vector(of: IndexStatements, row: Insert) -> Select[Any]:
    """``row``, which inserts one row of the facet, and in the same statement its vector, if the row is new: the
    parameters of :class:`~firefly_memory.search.index.Vector`. It gives the number of new rows."""
    added = row.returning(of.table.c.id, of.table.c.scope).cte("added")
    bits = {name: bindparam(name, type_=LargeBinary) for name in BITS}
    given = {"id": added.c.id, "scope": added.c.scope, "embedder": bindparam("embedder", type_=Text), **bits}
    beside = {"signature": (of.signatures, OF_SIGNATURE), "vector": (of.vectors, OF_VECTOR)}
    inserts = [
        insert(table).from_select(list(names), select(*[given[name] for name in names])).on_conflict_do_nothing()
        for table, names in beside.values()
    ]
    every = [each.cte(f"added_{name}") for name, each in zip(beside, inserts, strict=True)]
    return select(func.count()).select_from(added).add_cte(*every)


def _has(of: IndexStatements, word: Any) -> list[ColumnElement[bool]]:
    has_all, has_some = (of.table.c.words.op(name, is_comparison=True) for name in ("@>", "&&"))
    return [has_all(array([word], type_=Text)), has_some(array_in("scopes", Text()))]


ENGINE = _Engine()
