"""The agent history of a person, to be erased: the records whose scope is the person."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from firefly_memory.agent_history.log import AGENT_HISTORY_LOG, delete_record
from firefly_memory.people import Counts, Owned
from firefly_memory.protocols import StoreView
from firefly_memory.tombstones.log import history_identity

_PAGE = 100
"""Records that are refused together before they are deleted."""


class HistoryEraser:
    """An :class:`~firefly_memory.people.Eraser` of agent history, in every store that keeps it."""

    def __init__(self, view: StoreView) -> None:
        self._log = view.log(AGENT_HISTORY_LOG)

    async def owned(self, owner: str) -> AsyncIterator[Sequence[Owned]]:
        names = [record.conversation_id for record in await self._log.records(owner, None)]
        for start in range(0, len(names), _PAGE):
            yield [_owned(name) for name in names[start : start + _PAGE]]

    async def delete(self, owned: Sequence[Owned]) -> Counts:
        deleted = sum([await delete_record(self._log, each.name) for each in owned])
        while await self._log.go_on_deleting():  # messages that an interrupted erasure has left
            pass
        return {"agent-history": deleted}


def _owned(name: str) -> Owned:
    return Owned(name, (history_identity(name),), {"agent-history": 1})
