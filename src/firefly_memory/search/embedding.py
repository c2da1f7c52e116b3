"""The vectors of rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from firefly_memory.search.embedders.batches import async_embed_all, embed_all
from firefly_memory.search.embedders.protocol import Embedder, StaticEmbedder
from firefly_memory.search.index import Vector
from firefly_memory.search.searching import Work, at_once
from firefly_memory.search.signatures import stored_forms


async def embedded(embedder: Embedder, texts: Mapping[str, str], work: Work) -> dict[str, Vector]:
    """The vectors of rows, whose texts are given by id; ``EmbedderError`` if the embedder fails."""
    every = list(texts.values())
    if work is at_once or isinstance(embedder, StaticEmbedder):
        found = await work(partial(embed_all, embedder, every))
    else:
        found = await async_embed_all(embedder, every)
    name = embedder.name
    return {each: Vector(name, *stored) for each, stored in zip(texts, stored_forms(found), strict=True)}
