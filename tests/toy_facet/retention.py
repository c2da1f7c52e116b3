"""The notes that are too many: of each owner those with the last ids stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

from firefly_memory import clock
from firefly_memory.facets import LogOf
from firefly_memory.people import Bounds, Counts, Doomed
from firefly_memory.protocols import StoreView
from tests.toy_facet.log import Note, ToyLog
from tests.toy_facet.numbered import numbered

_PAGE = 3


class ToyPruner:
    """A :class:`~firefly_memory.people.Pruner`. A note has no age and no tokens, so ``keep_last`` is the only bound."""

    def __init__(self, number: int, view: StoreView) -> None:
        asked: LogOf[ToyLog] = LogOf(f"toy_{number}")
        self._log = view.log(asked)
        self._kind = f"toy-{number}-notes"

    async def doomed(self, bounds: Bounds) -> AsyncIterator[Sequence[Doomed]]:
        if bounds.keep_last is None:
            return
        left: Counter[str | None] = Counter()  # of each owner, after what was read: no more than that is remembered
        async for page in self._pages(bounds):
            left.update(note.owner for note in page)
        async for page in self._pages(bounds):
            doomed = []
            for note in page:
                if left[note.owner] > bounds.keep_last:
                    doomed.append(Doomed(note.note_id, note, {self._kind: 1}))
                left[note.owner] -= 1
            if doomed:
                yield doomed

    async def delete(self, doomed: Sequence[Doomed]) -> Counts:
        """Where more than notes is at stake, the statement that deletes compares as well, as that of conversations."""
        now = clock.now()
        unchanged = [each.name for each in doomed if await self._log.get(each.name, now) == each.state]
        return {self._kind: await self._log.delete(unchanged, now)}

    async def _pages(self, bounds: Bounds) -> AsyncIterator[Sequence[Note]]:
        after = ""
        while notes := await self._log.page(_PAGE, after, clock.now()):
            yield [note for note in notes if bounds.owner in (None, note.owner)]
            after = notes[-1].note_id


def _pruner(number: int) -> Any:
    return lambda view: ToyPruner(number, view)


def __getattr__(name: str) -> Any:
    return numbered(name, {"pruner": _pruner})
