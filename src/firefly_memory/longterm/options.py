"""What a ``MemoryService`` was made with."""

from __future__ import annotations

from typing import NamedTuple

from firefly_memory.search.embedders.protocol import Embedder


class Options(NamedTuple):
    """Its arguments, checked. The space is in its stored form."""

    space: str
    embedder: Embedder | None
    language: str | None
    said: set[str]
    """What the log has said already."""
    in_transaction: bool
    """Whether the store is bound to somebody's transaction: what was read may be undone, so nothing is kept."""
