"""What keeps an index right: a look at it, making its words again, and making the vectors that are missing.

Nothing here blocks writers. A walk goes over the rows by their ids in small pages, so that an interrupted one is simply
started again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from firefly_memory.search.embedders.protocol import Embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """An index, compared with the rows that it is made of."""

    kind: str
    """The kind of its rows."""
    rows: int
    language: str | None
    """``None`` before the first row."""
    outdated: int
    """Rows whose words are not those that their texts have today."""
    without_vector: int | None
    """Rows that lack a vector of the embedder; ``None`` without an embedder."""
    problems: tuple[str, ...] = ()
    """What else is wrong, in sentences."""
    vectors: Mapping[str, int] = field(default_factory=dict)
    """How many vectors there are, by embedder."""

    @property
    def is_right(self) -> bool:
        """Whether nothing has to be made again. Vectors that are missing are no fault."""
        return not self.outdated and not self.problems


class IndexKeeper(Protocol):
    """Keeps the index of one kind of rows in one store."""

    @property
    def kind(self) -> str: ...

    async def needs_rebuild(self) -> bool:
        """Whether the index is outdated, as far as a look at a few rows tells."""

    async def state(self, embedder: Embedder | None) -> IndexState:
        """The index, compared with every row."""

    def rebuild(self, language: str | None) -> AsyncIterator[int]:
        """Make again what is not right: how many rows were looked at, page by page. With ``language`` the words become
        those of another language."""

    def embed(self, embedder: Embedder) -> AsyncIterator[int]:
        """Make the vectors that are missing: how many were made, page by page."""

    def delete_vectors(self, embedder: str) -> AsyncIterator[int]:
        """Delete the vectors of one embedder: how many were deleted, page by page."""
