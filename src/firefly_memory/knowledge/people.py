"""The chunks of a person, to be erased."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from firefly_memory.knowledge.log import CHUNKS, KNOWLEDGE_LOG
from firefly_memory.people import Counts, Owned
from firefly_memory.protocols import StoreView

_PAGE = 200


class KnowledgeEraser:
    """An :class:`~firefly_memory.people.Eraser` of chunks, in all spaces and collections. A chunk has no identity of
    its own: the person is refused, and everybody else may add the same text."""

    def __init__(self, view: StoreView) -> None:
        self._log = view.log(KNOWLEDGE_LOG)

    async def owned(self, owner: str) -> AsyncIterator[Sequence[Owned]]:
        after = ""
        while ids := await self._log.of_owner(owner, _PAGE, after):
            yield [Owned(each, (), {CHUNKS.kind: 1}) for each in ids]
            after = ids[-1]

    async def delete(self, owned: Sequence[Owned]) -> Counts:
        return {CHUNKS.kind: await self._log.delete([each.name for each in owned])} if owned else {}
