"""What the service does, once for both modes: coroutines over a view of a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, overload

from firefly_memory.errors import InvalidEntryError, NotSupportedError
from firefly_memory.looking import Placed, Query, Reader, Resource, Row, Size, reader_of
from firefly_memory.protocols import StoreView
from firefly_memory.service.cursors import as_cursor, from_cursor
from firefly_memory.service.ids import id_of, parts_of
from firefly_memory.service.registered import readers_in, resource_of
from firefly_memory.service.selection import Selection, selection
from firefly_memory.validation import checked_whole_number

MOST_ROWS = 1_000
"""Of one page."""

_BATCH = 500
_READ = 10_000
"""Rows that are read for one page, if fields without an index select them."""


@dataclass(frozen=True, slots=True)
class RowPage(Sequence[Row]):
    """Some rows, and in ``next`` where to go on: ``list(…, after=page.next)``."""

    rows: tuple[Row, ...]
    next: str | None
    """``None`` on the last page. A page may have fewer rows than its limit and not be the last one: many rows that are
    not selected were read for it."""

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self.rows[index]


@dataclass(frozen=True, slots=True)
class Stats:
    """How much a store has of one kind."""

    kind: str
    rows: int | None
    """``None`` if the store cannot tell; then ``note`` says why."""
    tokens: int | None = None
    """``None`` if such rows have no tokens."""
    note: str | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """Rows of one resource of a store, as somebody wants them."""

    resource: Resource
    reader: Reader
    where: Mapping[str, Any]
    selected: Selection
    order: str

    async def page(self, after: str | None, limit: int) -> RowPage:
        resource, order = self.resource, self.order
        position = None if after is None else from_cursor(resource, order, self.where, after)
        batch = max(limit + 1, _BATCH) if self.selected.conditions else limit + 1
        found: list[Placed] = []
        for _ in range(max(1, _READ // batch)):
            page = await self.reader.page(Query(self.selected.indexed, order, position, batch))
            wanted = (each for each in page if self.selected.holds(each.row))
            found += islice(wanted, limit + 1 - len(found))
            if len(found) > limit:
                return self._page(found[:limit], found[limit - 1])
            if len(page) < batch:
                return self._page(found, None)
            position = page[-1].position
        return self._page(found, page[-1])

    def _page(self, found: Sequence[Placed], last: Placed | None) -> RowPage:
        rows = tuple({"id": id_of(self.resource, each.row), **each.row} for each in found)
        if last is None:
            return RowPage(rows, None)
        return RowPage(rows, as_cursor(self.resource, self.order, self.where, last.position))

    async def pages(self) -> AsyncIterator[RowPage]:
        after: str | None = None
        while True:
            page = await self.page(after, _BATCH)
            yield page
            after = page.next
            if after is None:
                return


async def _opened(view: StoreView, kind: str) -> tuple[Resource, Reader]:
    """The resource and its reader. The store has to be there: looking makes and migrates nothing."""
    facet, resource = resource_of(kind)
    await view.initialize(migrate=False)
    return resource, reader_of(view, facet, resource)


async def _asked(view: StoreView, kind: str, where: Mapping[str, Any] | None, order: str | None = None) -> _Asked:
    _, resource = resource_of(kind)
    where = {} if where is None else where
    selected = selection(resource, where)
    usual = next(iter(resource.orders))
    if order is not None and order not in resource.orders:
        raise InvalidEntryError("order", f"of {kind} is {' or '.join(resource.orders)}, not {order!r}")
    _, reader = await _opened(view, kind)
    return _Asked(resource, reader, where, selected, usual if order is None else order)


async def list_rows(
    view: StoreView, kind: str, where: Mapping[str, Any] | None, order: str | None, after: str | None, limit: int
) -> RowPage:
    limit = checked_whole_number("limit", limit, 1)
    if limit > MOST_ROWS:
        raise InvalidEntryError("limit", f"is {limit}; a page has at most {MOST_ROWS} rows, and a cursor for the next")
    asked = await _asked(view, kind, where, order)
    _check_needs(asked)
    return await asked.page(after, limit)


async def get_row(view: StoreView, kind: str, row_id: str) -> Row | None:
    parts = parts_of(resource_of(kind)[1], row_id)
    resource, reader = await _opened(view, kind)
    row = await reader.get(parts)
    return None if row is None else {"id": id_of(resource, row), **row}


async def count_rows(view: StoreView, kind: str, where: Mapping[str, Any] | None) -> Size:
    asked = await _asked(view, kind, where)
    if not asked.selected.conditions and tuple(asked.selected.indexed) in asked.resource.counted:
        return await asked.reader.size(asked.selected.indexed)
    _check_needs(asked)
    rows, tokens = 0, 0
    async for page in asked.pages():
        rows += len(page)
        tokens += sum(row.get("tokens", 0) for row in page)
    return Size(rows, None if asked.resource.field("tokens") is None else tokens)


async def delete_rows(view: StoreView, kind: str, ids: Iterable[str] | None, where: Mapping[str, Any] | None) -> int:
    resource = resource_of(kind)[1]
    if (ids is None) == (where is None):
        raise InvalidEntryError("ids", "name the rows by their ids, or select them by where; one of the two")
    if isinstance(ids, str):
        raise InvalidEntryError("ids", "must be several ids, not one text; for one row, give a list of one")
    if resource.why_kept is not None:
        raise NotSupportedError(resource.why_kept)
    if ids is not None:
        parts = list(dict.fromkeys(parts_of(resource, row_id) for row_id in ids))
        _, reader = await _opened(view, kind)
        return await reader.delete(parts)
    asked = await _asked(view, kind, where)
    _check_needs(asked)
    deleted = 0
    async for page in asked.pages():
        deleted += await asked.reader.delete([parts_of(resource, row["id"]) for row in page])
    return deleted


async def stats_of(view: StoreView) -> tuple[Stats, ...]:
    await view.initialize(migrate=False)
    return tuple([await _stats(resource, reader) for resource, reader in readers_in(view)])


async def _stats(resource: Resource, reader: Reader) -> Stats:
    try:
        return Stats(resource.kind, *await reader.size({}))
    except NotSupportedError as error:
        return Stats(resource.kind, None, note=str(error))


def _check_needs(asked: _Asked) -> None:
    missing = [name for name in asked.resource.needs if name not in asked.selected.indexed]
    if missing:
        of = " and ".join(missing)
        raise InvalidEntryError("where", f"{asked.resource.kind} are listed by their {of}; name it: {missing[0]}=…")
