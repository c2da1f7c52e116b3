"""The contract of the notes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from firefly_memory import clock
from firefly_memory.facets import Purged
from firefly_memory.identifiers import original_or_none
from firefly_memory.search.filters import Comparison, Filter
from firefly_memory.search.index import SearchIndex, Subject, Vector, indexed
from firefly_memory.search.scopes import scope_word
from firefly_memory.tombstones.log import Identity, owner_identity

LANGUAGE = "english"


def subject(number: int) -> Subject:
    """What of the notes is searched."""
    filters = (Filter("owner", Comparison.ONE_OF), Filter("position", Comparison.AT_LEAST))
    return Subject(f"toy-{number}-notes", f"toy_{number}_notes", expires="expires_at", filters=filters)


def scope_of(owner: str | None) -> str:
    """Who may find a note: the notes of one owner are a scope, and so are those of nobody."""
    return scope_word("notes", *([] if owner is None else [owner]))


class Note(NamedTuple):
    note_id: str
    body: str
    expires_at: datetime | None = None
    owner: str | None = None
    """The person whose note it is."""
    group: str | None = None
    """An owner's notes of one group are neighbours."""
    position: int = 0
    """The number in the group."""

    @property
    def identities(self) -> tuple[Identity, ...]:
        """What must not be erased if the note is to be saved."""
        return () if self.owner is None else (owner_identity(self.owner),)


class NoteRow(NamedTuple):
    """A note as it is stored. The last fields are those that it is found by: the library says what they are."""

    id: str
    body: str
    expires_at: datetime | None
    owner: str | None
    newest: datetime
    """When it was saved."""
    scope: str
    searchable: str
    words: Sequence[str]
    who: str | None
    group_id: str | None
    position: int

    @property
    def note(self) -> Note:
        group = original_or_none(self.group_id)
        return Note(self.id, self.body, self.expires_at, self.owner, group, self.position)


def row_of(note: Note) -> NoteRow:
    found_by = indexed(
        scope_of(note.owner), note.body, LANGUAGE, who=note.owner, group_id=note.group, position=note.position
    )
    return NoteRow(note.note_id, note.body, note.expires_at, note.owner, clock.now(), **found_by._asdict())


class ToyLog(Protocol):
    """Every operation is whole or not at all; a note that has expired is invisible at once."""

    @property
    def index(self) -> SearchIndex:
        """What the notes are searched by."""
        ...

    async def put(self, note: Note, vector: Vector | None = None) -> None:
        """Save a note with its vector, in place of the one with its id; ``ErasedError`` if its owner was erased."""

    async def get(self, note_id: str, now: datetime) -> Note | None:
        """One note."""

    async def read(self, note_ids: Sequence[str], now: datetime) -> Sequence[Note]:
        """These notes, as far as they are there, in any order."""

    async def page(self, limit: int, after: str, now: datetime) -> Sequence[Note]:
        """The first ``limit`` of those with ids after ``after``, by id in the order of code points."""

    async def delete(self, note_ids: Sequence[str], now: datetime) -> int:
        """Delete notes with their vectors; how many of them there were."""

    async def purge(self, limit: int, now: datetime) -> Purged:
        """Delete some of the notes that have expired, with their vectors."""

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[str]:
        """The first ``limit`` ids after ``after`` of a person's notes, by id in the order of code points. Also of notes
        that have expired."""

    async def erase(self, note_ids: Sequence[str]) -> int:
        """Delete notes with their vectors, also those that have expired; how many of them there were."""


async def purge(log: ToyLog, limit: int, now: datetime) -> Purged:
    return await log.purge(limit, now)
