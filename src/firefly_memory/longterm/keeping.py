"""Keeps the index of facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firefly_memory.identifiers import original_name
from firefly_memory.longterm.fact_form import fact_text, indexed_fact, value_of
from firefly_memory.longterm.log import LONG_TERM_LOG
from firefly_memory.longterm.rows import FACTS, FactRow
from firefly_memory.protocols import StoreView
from firefly_memory.search.index import Vector
from firefly_memory.search.index_keeper import RowIndexKeeper
from firefly_memory.search.searchable import searchable
from firefly_memory.search.searching import Work


def fact_index_keeper(view: StoreView, work: Work) -> RowIndexKeeper[FactRow]:
    """The keeper of the index of a store's facts."""
    facts = view.log(LONG_TERM_LOG).facts

    async def add(rows: Sequence[FactRow], vectors: Mapping[str, Vector]) -> int:
        return await facts.add_vectors(vectors, [row.written_by for row in rows])

    return RowIndexKeeper(FACTS, facts, work, made_again=_made_again, text=embedded_text, add=add)


def embedded_text(row: FactRow) -> str:
    """What the vector of a fact is made of."""
    return fact_text(searchable(original_name(row.key)), value_of(row))


def _made_again(row: FactRow, language: str) -> FactRow:
    fields = indexed_fact(row.scope, original_name(row.key), value_of(row), language)
    return row._replace(searchable=fields.searchable, words=tuple(fields.words))
