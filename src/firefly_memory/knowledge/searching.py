"""The search over chunks, as people look at them: that of ``KnowledgeStore``, for any view of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firefly_memory.knowledge.flows import KnowledgeFlows, Options
from firefly_memory.knowledge.rows import stored_space
from firefly_memory.protocols import StoreView
from firefly_memory.search.embedders.default import DEFAULT, embedder_to_use
from firefly_memory.search.hits import Hit, Request
from firefly_memory.search.searching import Work

_SAID: set[str] = set()
"""What the log has said already, in this process."""


class ChunkSearcher:
    """A :class:`~firefly_memory.looking.RowSearcher` of chunks: by ``collection``, which it needs, and by ``space`` and
    ``owner``, as ``KnowledgeStore`` has them. The default embedder makes the vector of a question."""

    def __init__(self, view: StoreView, work: Work) -> None:
        self._view = view
        self._work = work

    async def hits(self, request: Request, where: Mapping[str, str]) -> Sequence[Hit]:
        options = Options(
            space=stored_space(where.get("space", "")),
            embedder=embedder_to_use(DEFAULT),
            language=None,
            said=_SAID,
            in_transaction=True,  # what was read may be undone, so nothing is kept: these flows make one search
        )
        flows = KnowledgeFlows(self._view, options, self._work)
        return await flows.search(where["collection"], request, where.get("owner"))
