"""Chunks of knowledge as users see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, overload

from firefly_memory import clock
from firefly_memory.search.hits import Hit


@dataclass(frozen=True, slots=True)
class Chunk:
    """A text to be found later."""

    text: str
    who: str | None = None
    """Who said it. A question with the name then finds it sooner."""
    at: date | None = None
    """When it was said: a date, or an instant with a time zone. A question with the date then finds it."""
    group: str | None = None
    """Chunks of one group are neighbours in the order given, such as the turns of one session: where the words of a
    question stand in one of them, those beside it are found as well."""
    position: int | None = None
    """The number of the chunk in its group, if it is not the order in which chunks are given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk as it is stored."""

    id: str
    """Made of all fields but ``created_at``: the same for the same."""
    collection: str
    """The name of its collection."""
    text: str
    """What it says."""
    source: Any = None
    """Where it is from, as ``add()`` was told: any JSON value."""
    owner: str | None = None
    """The person whose data it is."""
    who: str | None = None
    """Who said it."""
    at: date | None = None
    """When it was said."""
    group: str | None = None
    """The group whose chunks are its neighbours."""
    position: int = 0
    """Its number in the group."""
    created_at: datetime = field(default_factory=clock.now)
    """When it was added first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPage(Sequence[StoredChunk]):
    """Some chunks, and in ``next`` the cursor of the next page: ``list(collection, after=page.next)``."""

    chunks: tuple[StoredChunk, ...]
    """The chunks of this page."""
    next: str | None
    """``None`` on the last page."""

    @overload
    def __getitem__(self, index: int) -> StoredChunk: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[StoredChunk, ...]: ...
    def __getitem__(self, index: int | slice) -> StoredChunk | tuple[StoredChunk, ...]:
        return self.chunks[index]

    def __len__(self) -> int:
        return len(self.chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkHit(Hit):
    """A chunk that was found."""

    chunk: StoredChunk
    """The whole chunk, with its source."""


Names = list[str]
Hits = list[ChunkHit]
"""Where a class has a method called ``list``, type checkers take ``list`` for it."""
