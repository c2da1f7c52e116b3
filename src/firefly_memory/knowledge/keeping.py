"""Keeps the index of chunks."""

from __future__ import annotations

from firefly_memory.identifiers import original_name, original_or_none
from firefly_memory.knowledge.log import CHUNKS, KNOWLEDGE_LOG, ChunkRow
from firefly_memory.knowledge.rows import said_at
from firefly_memory.protocols import StoreView
from firefly_memory.search.index import indexed
from firefly_memory.search.index_keeper import RowIndexKeeper
from firefly_memory.search.searchable import document_text
from firefly_memory.search.searching import Work


def chunk_index_keeper(view: StoreView, work: Work) -> RowIndexKeeper[ChunkRow]:
    """The keeper of the index of a store's chunks."""
    chunks = view.log(KNOWLEDGE_LOG)
    return RowIndexKeeper(CHUNKS, chunks, work, made_again=_made_again, text=embedded_text)


def embedded_text(row: ChunkRow) -> str:
    """What the vector of a chunk is made of."""
    return document_text(original_name(row.text), original_or_none(row.who))


def _made_again(row: ChunkRow, language: str) -> ChunkRow:
    at = None if row.said_at is None else said_at(row.said_at)
    fields = indexed(
        row.scope, original_name(row.text), language, who=original_or_none(row.who), at=at, position=row.position
    )
    return row._replace(searchable=fields.searchable, words=tuple(fields.words))
