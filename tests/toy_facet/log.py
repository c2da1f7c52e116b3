"""The contract of the notes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from firefly_memory.facets import Purged
from firefly_memory.tombstones.log import Identity, owner_identity


class Note(NamedTuple):
    note_id: str
    body: str
    expires_at: datetime | None = None
    owner: str | None = None
    """The person whose note it is."""

    @property
    def identities(self) -> tuple[Identity, ...]:
        """What must not be erased if the note is to be saved."""
        return () if self.owner is None else (owner_identity(self.owner),)


class ToyLog(Protocol):
    """Every operation is whole or not at all; a note that has expired is invisible at once."""

    async def put(self, note: Note) -> None:
        """Save a note, in place of the one with its id; ``ErasedError`` if its owner was erased."""

    async def get(self, note_id: str, now: datetime) -> Note | None:
        """One note."""

    async def page(self, limit: int, after: str, now: datetime) -> Sequence[Note]:
        """The first ``limit`` of those with ids after ``after``, by id in the order of code points."""

    async def search(self, word: str, now: datetime) -> Sequence[str]:
        """The ids of the notes with this word, in order."""

    async def delete(self, note_ids: Sequence[str], now: datetime) -> int:
        """Delete notes; how many of them there were."""

    async def purge(self, limit: int, now: datetime) -> Purged:
        """Delete some of the notes that have expired."""

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[str]:
        """The first ``limit`` ids after ``after`` of a person's notes, by id in the order of code points. Also of notes
        that have expired."""

    async def erase(self, note_ids: Sequence[str]) -> int:
        """Delete notes, also those that have expired; how many of them there were."""


async def purge(log: ToyLog, limit: int, now: datetime) -> Purged:
    return await log.purge(limit, now)
