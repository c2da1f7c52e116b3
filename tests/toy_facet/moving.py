"""The notes in archives and copies."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from firefly_memory import clock
from firefly_memory.facets import LogOf
from firefly_memory.moving import Item, Kind, Placed, Walk, Writing
from firefly_memory.protocols import StoreView
from tests.toy_facet.log import Note, ToyLog
from tests.toy_facet.numbered import numbered

_PAGE = 3


def _log(view: StoreView, number: int) -> ToyLog:
    asked: LogOf[ToyLog] = LogOf(f"toy_{number}")
    return view.log(asked)


def _kinds(number: int) -> tuple[Kind, ...]:
    async def read(walk: Walk, _: Any) -> Placed:
        log, after = _log(walk.view, number), ""
        while page := await log.page(_PAGE, after, clock.now()):
            for note in page:
                until = None if note.expires_at is None else note.expires_at.isoformat()
                yield note.note_id, {**note._asdict(), "expires_at": until}
            after = page[-1].note_id

    return (
        Kind(
            name=f"toy_{number}_note",
            version=1,
            since=f"toy {number} 1.0",
            plural=f"toy_{number}_notes",
            noun=f"notes of toy {number}",
            read=read,
            selected_by="note_id",
            describe=lambda item: f"note {item['note_id']!r} of toy {number}",
        ),
    )


class ToyWriter:
    """Writes each note at once."""

    def __init__(self, number: int, view: StoreView) -> None:
        self._log = _log(view, number)

    async def take(self, _: str, item: Item, *, there: bool = False) -> None:
        until = item["expires_at"]
        expires_at = None if until is None else datetime.fromisoformat(until)
        if not there:
            texts = str.__str__(item["note_id"]), str.__str__(item["body"])
            await self._log.put(Note(*texts, expires_at, item["owner"], item["group"], item["position"]))

    async def flush(self) -> None:
        """Nothing waits."""

    async def finish(self) -> None:
        """Nothing waits."""

    async def abandon(self) -> None:
        """Notes are whole."""


def _writer(number: int) -> Any:
    def make(view: StoreView, _: Writing) -> ToyWriter:
        return ToyWriter(number, view)

    return make


def __getattr__(name: str) -> Any:
    return numbered(name, {"kinds": _kinds, "writer": _writer})
