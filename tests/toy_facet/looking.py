"""The notes as people look at them, and search them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from firefly_memory import NotSupportedError, clock
from firefly_memory.facets import LogOf
from firefly_memory.looking import Field, Placed, Query, Resource, Row, RowId, Search, Size, Type, Where
from firefly_memory.protocols import StoreView
from firefly_memory.search.hits import Explanation, Hit, Request
from firefly_memory.search.searching import Work
from tests.toy_facet.log import Note, ToyLog
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
    """The notes with the most words of a question, of everybody or of one owner."""

    def __init__(self, number: int, view: StoreView) -> None:
        asked: LogOf[ToyLog] = LogOf(f"toy_{number}")
        self._log = view.log(asked)

    async def hits(self, request: Request, where: Mapping[str, str]) -> Sequence[Hit]:
        if request.mode not in ("best", "text"):
            raise NotSupportedError(f"notes are searched as text, not by mode={request.mode!r}")
        found = await self._found(request.question, where.get("owner"))
        return [
            Hit(
                id=note.note_id,
                text=note.body,
                score=float(words),
                ranks={"text": rank},
                explanation=Explanation(scores={"text": float(words)}) if request.explain else None,
            )
            for rank, (note, words) in enumerate(found[: request.top_k], start=1)
        ]

    async def _found(self, question: str, owner: str | None) -> list[tuple[Note, int]]:
        """The notes with the numbers of their words, most first."""
        words, now = Counter[str](), clock.now()
        for word in dict.fromkeys(re.findall(r"\w+", question)):
            words.update(await self._log.search(word, now))
        notes = [await self._log.get(each, now) for each in sorted(words)]
        mine = [note for note in notes if note is not None and owner in (None, note.owner)]
        return sorted(((note, words[note.note_id]) for note in mine), key=lambda each: -each[1])


def _row(note: Note) -> Row:
    return {**note._asdict(), "expires_at": None if note.expires_at is None else note.expires_at.isoformat()}


def _resources(number: int) -> tuple[Resource, ...]:
    notes = Resource(
        kind=f"toy-{number}-notes",
        title=f"notes of toy {number}",
        fields=(
            Field("note_id"),
            Field("body"),
            Field("expires_at", Type.INSTANT, in_table=False),
            Field("owner", in_table=False),
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
    def make(view: StoreView, _work: Work) -> ToySearcher:
        return ToySearcher(number, view)

    return make


def __getattr__(name: str) -> Any:
    return numbered(name, {"resources": _resources, "reader": _reader, "searcher": _searcher})
