"""The search over chunks, as people look at them: that of ``KnowledgeStore``, for any view of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firefly_memory.knowledge.flows import KnowledgeFlows, Options
from firefly_memory.knowledge.rows import stored_space
from firefly_memory.protocols import StoreView
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.hits import Hit, Request
from firefly_memory.search.searching import Work

_SAID: set[str] = set()
"""What the log has said already, in this process."""


class ChunkSearcher:
    """A :class:`~firefly_memory.looking.RowSearcher` of chunks: by ``collection``, which it needs, and by ``space`` and
    ``owner``, as ``KnowledgeStore`` has them."""

    def __init__(self, view: StoreView, work: Work, embedder: Embedder | None) -> None:
        self._view = view
        self._work = work
        self._embedder = embedder

    async def hits(self, request: Request, where: Mapping[str, str]) -> Sequence[Hit]:
        options = Options(
            space=stored_space(where.get("space", "")),
            embedder=self._embedder,
            language=None,
            said=_SAID,
            in_transaction=True,  # what was read may be undone, so nothing is kept: these flows make one search
        )
        flows = KnowledgeFlows(self._view, options, self._work)
        return await flows.search(where["collection"], request, where.get("owner"))
