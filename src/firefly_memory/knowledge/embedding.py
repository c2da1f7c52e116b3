"""The vectors of chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial

from firefly_memory.identifiers import original_name, original_or_none
from firefly_memory.knowledge.log import ChunkRow, KnowledgeLog
from firefly_memory.search.embedders.batches import async_embed_all, embed_all
from firefly_memory.search.embedders.protocol import Embedder, StaticEmbedder
from firefly_memory.search.index import Vector
from firefly_memory.search.searchable import document_text
from firefly_memory.search.searching import Work, at_once
from firefly_memory.search.signatures import signature_bytes, vector_bytes

_AT_ONCE = 256


async def embedded(embedder: Embedder, rows: Sequence[ChunkRow], work: Work) -> Mapping[str, Vector]:
    """The vectors of rows by id; ``EmbedderError`` if the embedder fails."""
    texts = [document_text(original_name(row.text), original_or_none(row.who)) for row in rows]
    if work is at_once or isinstance(embedder, StaticEmbedder):
        found = await work(partial(embed_all, embedder, texts))
    else:
        found = await async_embed_all(embedder, texts)
    return {
        row.id: Vector(embedder.name, vector_bytes(vector), signature_bytes(vector))
        for row, vector in zip(rows, found, strict=True)
    }


async def without_vector(log: KnowledgeLog, embedder: Embedder) -> AsyncIterator[Sequence[ChunkRow]]:
    """The rows that have no vector of this embedder, page by page, by id."""
    after = ""
    while rows := await log.without_vector(embedder.name, _AT_ONCE, after):
        yield rows
        after = rows[-1].id
