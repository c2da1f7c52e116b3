"""A facet of another package: notes, which only the in-memory store keeps, and nothing in the library knows of."""

from __future__ import annotations

from typing import Any

from firefly_memory.facets import Facet, LogOf, Moving, Operations, absent
from firefly_memory.moving import Item, Kind, Placed, Walk, Writing
from firefly_memory.protocols import StoreView

_PAGE = 3
_NOTHING = absent("notes are here to be moved")


class Notes:
    """The notes of a store, by name."""

    def __init__(self, memory: object) -> None:
        self.by_name: dict[str, str] = {}

    async def page(self, after: str) -> list[tuple[str, str]]:
        return sorted((name, text) for name, text in self.by_name.items() if name > after)[:_PAGE]

    async def write(self, notes: dict[str, str]) -> None:
        self.by_name |= notes

    def close(self) -> None:
        self.by_name.clear()


NOTES: LogOf[Notes] = LogOf("notes")


async def _read(walk: Walk, _: Any) -> Placed:
    after = ""
    while page := await walk.view.log(NOTES).page(after):
        for name, text in page:
            yield name, {"name": name, "text": text}
        after = page[-1][0]


def _from_archive(item: Item, untrusted: bool) -> tuple[Item, int]:
    if not isinstance(item["text"], str):
        raise TypeError("the text of a note is no text")
    return ({**item, "text": item["text"].replace("obey", "")} if untrusted else item), 0


def note(version: int = 1) -> Kind:
    return Kind(
        name="note",
        version=version,
        since=f"firefly-notes {version}.0",
        plural="notes",
        noun="notes",
        read=_read,
        selected_by="name",
        describe=lambda item: f"note {item['name']!r}",
        from_archive=_from_archive,
    )


KINDS = (note(),)
LATER_KINDS = (note(2),)


class NoteWriter:
    def __init__(self, view: StoreView, writing: Writing) -> None:
        self._notes = view.log(NOTES)
        self._waiting: dict[str, str] = {}

    async def take(self, _: str, item: Item, *, there: bool = False) -> None:
        if not there:
            self._waiting[item["name"]] = item["text"]
        if len(self._waiting) == _PAGE:
            await self.flush()

    async def flush(self) -> None:
        await self._notes.write(self._waiting)
        self._waiting = {}

    async def finish(self) -> None:
        await self.flush()

    async def abandon(self) -> None:
        """Notes are whole."""


def notes_facet(kinds: str = "KINDS") -> Facet:
    return Facet(
        name="notes",
        title="notes",
        storage=_NOTHING,
        operations=Operations(
            sql=_NOTHING,
            mongodb=_NOTHING,
            in_memory=f"{__name__}:Notes",
            in_files=_NOTHING,
            over_entries=_NOTHING,
            expiry=_NOTHING,
        ),
        moving=Moving(
            kinds=f"{__name__}:{kinds}",
            writer=f"{__name__}:NoteWriter",
            if_missing="the target cannot keep notes; InMemoryStore can",
            without="leave out the notes",
            nothing_but_messages=False,
        ),
        people=_NOTHING,
        looking=_NOTHING,
        packaging=_NOTHING,
    )
