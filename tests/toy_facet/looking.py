"""The notes as people look at them, and search them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firefly_memory import clock
from firefly_memory.facets import LogOf
from firefly_memory.looking import Field, Placed, Query, Resource, Row, RowId, Search, Size, Type, Where
from firefly_memory.protocols import StoreView
from firefly_memory.search.counting import counts_of
from firefly_memory.search.embedders.protocol import Embedder
from firefly_memory.search.hits import Hit, Request
from firefly_memory.search.searching import Searcher, Work
from tests.toy_facet.log import LANGUAGE, Note, ToyLog, scope_of, subject
from tests.toy_facet.numbered import numbered


class ToyReader:
    """By the operations of the facet, in every store that has them."""

    def __init__(self, number: int, view: StoreView) -> None:
        asked: LogOf[ToyLog] = LogOf(f"toy_{number}")
        self._log = view.log(asked)

    async def page(self, query: Query) -> Sequence[Placed]:
        after = "" if query.after is None else query.after[0]
        notes = await self._log.page(query.limit, after, clock.now())
        return [Placed((note.note_id,), _row(note)) for note in notes]

    async def get(self, row_id: RowId) -> Row | None:
        note = await self._log.get(row_id[0], clock.now())
        return None if note is None else _row(note)

    async def delete(self, row_ids: Sequence[RowId]) -> int:
        return await self._log.delete([note_id for (note_id,) in row_ids], clock.now())

    async def size(self, _: Where) -> Size:
        total, after = 0, ""
        while page := await self._log.page(100, after, clock.now()):
            total, after = total + len(page), page[-1].note_id
        return Size(total)


class ToySearcher:
    """A :class:`~firefly_memory.looking.RowSearcher` of the notes of one owner, or of nobody. It reads the notes that
    the library has found."""

    def __init__(self, number: int, view: StoreView, work: Work, embedder: Embedder | None) -> None:
        asked: LogOf[ToyLog] = LogOf(f"toy_{number}")
        self._log = view.log(asked)
        index = self._log.index
        self._search = Searcher(subject(number), index, embedder, LANGUAGE, work, counts_of(index), set())

    async def hits(self, request: Request, where: Mapping[str, str]) -> Sequence[Hit]:
        found = await self._search.found(request, [scope_of(where.get("owner"))])
        notes = {note.note_id: note for note in await self._log.read([each.id for each in found], clock.now())}
        return [
            Hit(
                id=each.id,
                text=notes[each.id].body,
                score=each.score,
                ranks=each.ranks,
                explanation=each.explanation,
            )
            for each in found
            if each.id in notes  # others were deleted meanwhile
        ]


def _row(note: Note) -> Row:
    return {**note._asdict(), "expires_at": None if note.expires_at is None else note.expires_at.isoformat()}


def _resources(number: int) -> tuple[Resource, ...]:
    notes = Resource(
        kind=subject(number).kind,
        title=f"notes of toy {number}",
        fields=(
            Field("note_id"),
            Field("body"),
            Field("expires_at", Type.INSTANT, in_table=False),
            Field("owner", in_table=False),
            Field("group", in_table=False),
            Field("position", Type.NUMBER, in_table=False),
        ),
        identity=("note_id",),
        orders={"id": (str,)},
        reader=f"tests.toy_facet.looking:reader_{number}",
        search=Search(f"tests.toy_facet.looking:searcher_{number}", takes=("owner",), shows=("owner",)),
    )
    return (notes,)


def _reader(number: int) -> Any:
    def make(view: StoreView, _direct: None) -> ToyReader:
        return ToyReader(number, view)

    return make


def _searcher(number: int) -> Any:
    def make(view: StoreView, work: Work, embedder: Embedder | None) -> ToySearcher:
        return ToySearcher(number, view, work, embedder)

    return make


def __getattr__(name: str) -> Any:
    return numbered(name, {"resources": _resources, "reader": _reader, "searcher": _searcher})
