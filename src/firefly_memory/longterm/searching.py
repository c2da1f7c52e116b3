"""The search over facts, as people look at them: that of ``MemoryService``, for any view of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firefly_memory.longterm.fact_flows import FactFlows, Search
from firefly_memory.longterm.options import Options
from firefly_memory.longterm.places import stored_space
from firefly_memory.protocols import StoreView
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.hits import Hit, Request
from firefly_memory.search.searching import Work

_SAID: set[str] = set()
"""What the log has said already, in this process."""

_IDS = ("session_id", "user_id", "agent_id")


class FactSearcher:
    """A :class:`~firefly_memory.looking.RowSearcher` of facts: of the global ones of a ``space``, and of those of the
    ``user_id``, the ``agent_id`` and the ``session_id`` that are named. Facts of any confidence are found, and only
    those of a ``fact_type`` if one is named."""

    def __init__(self, view: StoreView, work: Work, embedder: Embedder | None) -> None:
        self._view = view
        self._work = work
        self._embedder = embedder

    async def hits(self, request: Request, where: Mapping[str, str]) -> Sequence[Hit]:
        options = Options(
            space=stored_space(where.get("space", "default")),
            embedder=self._embedder,
            language=None,
            said=_SAID,
            in_transaction=True,  # what was read may be undone, so nothing is kept: these flows make one search
        )
        types = [where["fact_type"]] if "fact_type" in where else None
        ids = {name: where.get(name) for name in _IDS}
        flows = FactFlows(self._view, options, self._work)
        return (await flows.search(ids, Search(request, types, None, None))).items
