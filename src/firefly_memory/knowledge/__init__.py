"""Knowledge: named collections of chunks of text, with their sources, that are found by what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firefly_memory.lazy_names import lazily

if TYPE_CHECKING:
    from firefly_memory.knowledge.store import KnowledgeStore
    from firefly_memory.knowledge.types import Chunk, ChunkHit, ChunkPage, StoredChunk
    from firefly_memory.search.hits import Explanation, Hit

__all__ = ["Chunk", "ChunkHit", "ChunkPage", "Explanation", "Hit", "KnowledgeStore", "StoredChunk"]

_WHERE = {
    "Chunk": "firefly_memory.knowledge.types",
    "ChunkHit": "firefly_memory.knowledge.types",
    "ChunkPage": "firefly_memory.knowledge.types",
    "Explanation": "firefly_memory.search.hits",
    "Hit": "firefly_memory.search.hits",
    "KnowledgeStore": "firefly_memory.knowledge.store",
    "StoredChunk": "firefly_memory.knowledge.types",
}


def __getattr__(name: str) -> Any:
    return lazily(name, _WHERE, globals())
