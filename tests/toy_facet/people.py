"""The notes of a person, to be erased."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from firefly_memory.facets import LogOf
from firefly_memory.people import Counts, Owned
from firefly_memory.protocols import StoreView
from tests.toy_facet.log import ToyLog
from tests.toy_facet.numbered import numbered

_PAGE = 3


class ToyEraser:
    """An :class:`~firefly_memory.people.Eraser`. A note has no identity of its own: its id may be used again."""

    def __init__(self, number: int, view: StoreView) -> None:
        asked: LogOf[ToyLog] = LogOf(f"toy_{number}")
        self._log = view.log(asked)
        self._kind = f"toy-{number}-notes"

    async def owned(self, owner: str) -> AsyncIterator[Sequence[Owned]]:
        after = ""
        while note_ids := await self._log.of_owner(owner, _PAGE, after):
            yield [Owned(note_id, (), {self._kind: 1}) for note_id in note_ids]
            after = note_ids[-1]

    async def delete(self, owned: Sequence[Owned]) -> Counts:
        return {self._kind: await self._log.erase([each.name for each in owned])}


def _eraser(number: int) -> Any:
    return lambda view: ToyEraser(number, view)


def __getattr__(name: str) -> Any:
    return numbered(name, {"eraser": _eraser})
