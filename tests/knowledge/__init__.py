"""The facet of knowledge. Here is what its tests share: rows, and the operations of a store in one mode."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from firefly_memory import EntryStore
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.identifiers import stored_name
from firefly_memory.knowledge.log import KNOWLEDGE_LOG, ChunkRow
from firefly_memory.knowledge.rows import row_of, source_text, stored_owner, stored_space
from firefly_memory.knowledge.types import Chunk
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.words import FORM
from firefly_memory.testing import Mode

START = datetime(2026, 5, 6, 7, 8, 9, 101112, tzinfo=UTC)
ENGLISH = IndexLanguage("english", FORM)


def row(
    text: str,
    *,
    day: int = 0,
    space: str = "",
    collection: str = "notes",
    owner: str | None = None,
    source: Any = None,
    who: str | None = None,
    at: date | None = None,
    group: str | None = None,
    position: int = 0,
    language: str = "english",
) -> ChunkRow:
    """The row of a chunk that was added so many days after :data:`START`."""
    return row_of(
        Chunk(text, who, at, group),
        space=stored_space(space),
        collection=stored_name("collection", collection),
        owner=stored_owner(owner),
        source=source_text(source),
        position=position,
        created_at=START + timedelta(days=day),
        language=language,
    )


class Chunks:
    """The operations of a store in one mode: ``await Chunks(store, mode)("page", 10, "")``."""

    def __init__(self, store: EntryStore, mode: Mode = Mode.SUSPENDING) -> None:
        self._store = store
        self._mode = mode

    async def __call__(self, operation: str, *arguments: Any) -> Any:
        if self._mode is Mode.BLOCKING:
            return run_without_loop(getattr(self._store.blocking.log(KNOWLEDGE_LOG), operation)(*arguments))
        return await getattr(self._store.suspending.log(KNOWLEDGE_LOG), operation)(*arguments)

    async def ask(self, question: str, *arguments: Any) -> Any:
        """Ask the index."""
        if self._mode is Mode.BLOCKING:
            return run_without_loop(getattr(self._store.blocking.log(KNOWLEDGE_LOG).index, question)(*arguments))
        return await getattr(self._store.suspending.log(KNOWLEDGE_LOG).index, question)(*arguments)

    async def add(self, *rows: ChunkRow) -> int:
        """Those of each owner together; how many were not there yet."""
        owners = dict.fromkeys(each.owner for each in rows)
        return sum([await self("add", [each for each in rows if each.owner == one], {}, ENGLISH) for one in owners])

    async def every(self) -> Sequence[ChunkRow]:
        """All chunks, by id."""
        rows: Sequence[ChunkRow] = await self("page", 10_000, "")
        return rows
