"""Words in PostgreSQL: an array with an inverted index (GIN), which finds a scope and a word in one scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Insert,
    LargeBinary,
    Select,
    Table,
    Text,
    bindparam,
    cast,
    desc,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import array

from firefly_memory.databases.sql.postgresql.arrays import array_in, array_text
from firefly_memory.search.sql.statements import BITS, IndexStatements


class _Engine:
    def counts(self, of: IndexStatements) -> Select[Any]:
        words = func.pg_catalog.unnest(array_in("words", Text())).table_valued("word").render_derived(name="asked")
        some = (
            select(literal_column("1"))
            .select_from(of.table)
            .where(*_has(of, words.c.word))
            .limit(bindparam("most", type_=BigInteger))
            .correlate(words)
            .subquery()
        )
        counted = select(func.count()).select_from(some).scalar_subquery()
        return select(words.c.word, counted).select_from(words)

    def best(self, of: IndexStatements) -> Select[Any]:
        arrays = array_in("words", Text()), array_in("weights", BigInteger())
        words = func.unnest(*arrays).table_valued("word", "weight").render_derived(name="asked")
        c = of.table.c
        wanted = *_has(of, words.c.word), *of.is_live(of.table)
        rows = select(c.number, c.id).where(*wanted).correlate(words).lateral("rows")
        weight = func.sum(words.c.weight)
        found = select(rows.c.id).select_from(words.join(rows, literal_column("true")))
        in_order = found.group_by(rows.c.number, rows.c.id).order_by(desc(weight), of.dialect.by_code_point(rows.c.id))
        return in_order.limit(bindparam("limit", type_=BigInteger))

    def words(self, _: IndexStatements, scopes: Sequence[str], words: Sequence[str]) -> dict[str, Any]:
        return {"scopes": array_text(scopes), "words": array_text(words)}

    def weighted(
        self, of: IndexStatements, scopes: Sequence[str], words: Sequence[str], weights: Sequence[int]
    ) -> dict[str, Any]:
        return {**self.words(of, scopes, words), "weights": array_text(weights)}

    def many_beside(self, of: IndexStatements, table: Table, names: Sequence[str]) -> Insert:
        arrays = array_in("ids", Text()), array_in("bits", Text())
        given = func.unnest(*arrays).table_valued("id", "bits").render_derived(name="given")
        return of.beside(table, names, given.c.id, dict.fromkeys(BITS, cast(given.c.bits, LargeBinary)))

    def several(self, _: IndexStatements, ids: Sequence[str], bits: Sequence[bytes]) -> dict[str, Any]:
        return {"ids": array_text(ids), "bits": array_text(rf"\x{each.hex()}" for each in bits)}

    def check_words(self, _: IndexStatements) -> None:
        return None  # the index is one of the table's own

    def rebuild_words(self, _: IndexStatements) -> None:
        return None

    def is_out_of_step(self, _: BaseException) -> bool:
        return False


def _has(of: IndexStatements, word: Any) -> list[ColumnElement[bool]]:
    has_all, has_some = (of.table.c.words.op(name, is_comparison=True) for name in ("@>", "&&"))
    return [has_all(array([word], type_=Text)), has_some(array_in("scopes", Text()))]


ENGINE = _Engine()
