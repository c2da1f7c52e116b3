"""The contract of knowledge: what every backend does with chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from firefly_memory.codec import damaged
from firefly_memory.cursors import Moment
from firefly_memory.errors import CorruptDataError
from firefly_memory.facets import LogOf
from firefly_memory.identifiers import original_name
from firefly_memory.search.index import SearchIndex, Subject, Vector
from firefly_memory.search.index_keeper import KeptRows
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.tombstones.log import Identity, owner_identity

CHUNKS = Subject("chunks", "memory_chunks")


class ChunkRow(NamedTuple):
    """A chunk as it is stored: the columns of ``memory_chunks``, all texts in their stored form.

    The last fields are those by which it is found (:class:`~firefly_memory.search.index.Indexed`).
    """

    id: str
    space: str
    """The tenant; empty without one."""
    collection: str
    owner: str | None
    source: str | None
    """JSON text."""
    text: str
    said_at: str | None
    """A date, or an instant, in ISO 8601."""
    newest: datetime
    """The same as an instant, or else :attr:`created_at`: the order of the search that is no ranking."""
    created_at: datetime
    scope: str
    who: str | None
    group_id: str | None
    position: int
    searchable: str
    words: Sequence[str]

    @property
    def identities(self) -> tuple[Identity, ...]:
        """What must not be erased if the chunk is to be stored."""
        return () if self.owner is None else (owner_identity(self.owner),)


_TEXTS = ("id", "space", "collection", "text", "scope", "searchable")
_TEXTS_OR_NONE = ("owner", "source", "said_at", "who", "group_id")


def checked_row(row: ChunkRow) -> ChunkRow:
    """``row``, or ``CorruptDataError`` for a field of another type."""
    values = row._asdict()
    wrong = [name for name in _TEXTS if not isinstance(values[name], str)]
    wrong += [name for name in _TEXTS_OR_NONE if not isinstance(values[name], (str, type(None)))]
    if wrong or not isinstance(row.position, int):
        raise damaged_chunk(row.id, TypeError(f"{', '.join(wrong) or 'position'} has another type"))
    return row


def damaged_chunk(name: object, exc: Exception) -> CorruptDataError:
    """The error for a damaged chunk."""
    shown = original_name(name) if isinstance(name, str) else name
    return damaged("reading a chunk", f"chunk {shown!r}", exc)


class KnowledgeLog(KeptRows[ChunkRow], Protocol):
    """The chunks of one store, and their index. Each call is done completely or not at all."""

    @property
    def index(self) -> SearchIndex:
        """The reading half of the index of chunks."""
        ...

    async def add(self, rows: Sequence[ChunkRow], vectors: Mapping[str, Vector], language: IndexLanguage | None) -> int:
        """Store the chunks that are not there yet, with their vectors by id; how many these were. After a lost
        connection, those of the first attempt may count as there.

        A vector of a chunk that is there without one is stored as well. All rows have the same owner; ``ErasedError``
        if this person was erased. ``language`` is what the words are made by: the first writer's counts, and
        ``LanguageError`` is raised for another one. ``None`` asks for nothing.
        """

    async def read(self, ids: Sequence[str]) -> Sequence[ChunkRow]:
        """These chunks, as far as they are there, in any order."""

    async def oldest(self, space: str, collection: str, limit: int, after: Moment | None) -> Sequence[ChunkRow]:
        """The first ``limit`` chunks of a collection after a moment, by ``created_at``, equal ones by id."""

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[str]:
        """The first ``limit`` ids after ``after`` of a person's chunks, in all spaces, by id."""

    async def collections(self, space: str, limit: int, after: str) -> Sequence[str]:
        """The first ``limit`` names of collections after ``after``, in the order of code points."""

    async def count(self, space: str | None, collection: str | None) -> int:
        """How many chunks there are: in a collection, in a space, or in all."""

    async def delete(self, ids: Sequence[str]) -> int:
        """Delete chunks with their vectors; how many of them there were."""

    async def delete_some(self, space: str, collection: str, source: str | None, limit: int) -> int:
        """Delete up to ``limit`` chunks of a collection with their vectors, those of one source or all; how many."""


KNOWLEDGE_LOG: LogOf[KnowledgeLog] = LogOf("knowledge")
"""``view.log(KNOWLEDGE_LOG)``: the chunks of a store."""
