"""Writes items of an archive or of another store into a store. The writer of its facet writes each item."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from firefly_memory.errors import FireflyMemoryError
from firefly_memory.moving import FacetWriter, Item, Kind, Writing
from firefly_memory.protocols import StoreView
from firefly_memory.transfer.counts import Counts
from firefly_memory.transfer.registered import kinds_by_name


class ItemWriter:
    """Writes item after item, and counts them."""

    def __init__(self, view: StoreView, counts: Counts, writing: Writing) -> None:
        self._view = view
        self._counts = counts
        self._writing = writing
        self._facets = {name: facet for name, (facet, _) in kinds_by_name().items()}
        self._writers: dict[str, FacetWriter] = {}
        self._current: FacetWriter | None = None

    async def take(self, kind: Kind, item: Item, *, there: bool = False) -> None:
        """Write an item; if the store has an equal one ``there`` already, it is only counted."""
        facet = self._facets[kind.name]
        writer = self._writers.get(facet.name)
        if writer is None:
            writer = self._writers[facet.name] = facet.writer(self._view, self._writing)
        if writer is not self._current:
            await self.finish()
            self._current = writer
        await writer.take(kind.name, item, there=there)
        self._counts.add(kind)

    async def flush(self) -> None:
        """Write the items taken so far, although the group is not full."""
        if self._current is not None:
            await self._current.flush()

    async def finish(self) -> None:
        """Write all items that are left."""
        if self._current is not None:
            await self._current.finish()

    @asynccontextmanager
    async def whole_items(self) -> AsyncIterator[None]:
        """After an error, undo the unfinished item."""
        try:
            yield
        except Exception:
            if self._current is not None:
                with suppress(FireflyMemoryError):  # the first error is the one to raise
                    await self._current.abandon()
            raise
