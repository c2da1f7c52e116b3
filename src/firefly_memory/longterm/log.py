"""The contract of long-term memory: what every backend does with facts and people.

A *fact* has a key in a *place*: one scope of one space, such as one person's own facts. Each place has a word
(:attr:`~firefly_memory.longterm.places.Place.word`), and no two facts of one place have the same key. A *person* has a
word as well: that of the place of the person's facts. A person who was merged into another one *stands for* this one:
it has no facts, and a request for its facts gets those of the other one.

Every call is done completely or not at all. All texts are in their stored form, instants in UTC. Writes that would
bring something of an erased person back raise ``ErasedError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from firefly_memory.cursors import Moment
from firefly_memory.facets import LogOf
from firefly_memory.longterm.places import Lookup
from firefly_memory.longterm.rows import (
    FactPosition,
    FactRow,
    FactWrite,
    Filters,
    Merged,
    UserRow,
    VersionRow,
    Written,
)
from firefly_memory.search.index import SearchIndex, Vector
from firefly_memory.search.index_keeper import KeptRows
from firefly_memory.search.index_language import IndexLanguage


class Met(NamedTuple):
    """A person who was looked up or made."""

    row: UserRow
    """Of the person who was asked for, or for whom this one stands."""
    is_new: bool
    """Whether this call made the person."""


class FactLog(KeptRows[FactRow], Protocol):
    """The facts of one store, and their index.

    For :meth:`KeptRows.rewrite` only ``searchable`` and ``words`` of the rows are replaced. A write at the same moment
    wins: a row whose ``written_by`` or ``scope`` is another one by now is left as it is.
    """

    @property
    def index(self) -> SearchIndex:
        """The reading half of the index of facts."""
        ...

    async def add_vectors(self, vectors: Mapping[str, Vector], written_by: Sequence[str] | None = None) -> int:
        """The same as of every facet. With ``written_by``, only for facts whose last write is one of these."""

    async def set(self, writes: Sequence[FactWrite], language: IndexLanguage | None) -> Sequence[Written]:
        """Store facts, all of them or none; no two of one place have the same key.

        A fact that is there becomes what :func:`~firefly_memory.longterm.rows.updated` says, and its old value a
        version. A new value leaves no vector of the old one. ``written_by`` of the new row tells a write that is
        repeated after a lost reply: it changes nothing twice.

        :class:`~firefly_memory.longterm.rows.PersonMovedError` if the place of one of them is that of a person who
        stands for another one: then nothing is stored. ``LanguageError`` as in
        :meth:`~firefly_memory.knowledge.log.KnowledgeLog.add`.
        """

    async def restore(self, row: FactRow, versions: Sequence[VersionRow], language: IndexLanguage | None) -> bool:
        """Store a fact of an archive or of another store as it is, with all its versions. ``False``, and nothing is
        stored, if its id is there or its place has the key. ``PersonMovedError`` as in :meth:`set`. ``ErasedError``
        for the owner of a version as well (:func:`~firefly_memory.longterm.rows.identities_of`)."""

    # The rows that `get`, `find`, `as_of` and `list` give have no `words`: nobody reads these, and they are long.

    async def get(self, lookup: Lookup, key: str, now: datetime) -> FactRow | None:
        """The fact with this key in the most specific place that has it, after it has counted this access. The person
        of the lookup counts as the one for whom they stand. One statement; on MongoDB one command, and one more for a
        person who was merged."""

    async def find(self, lookup: Lookup, key: str) -> FactRow | None:
        """The same, and nothing is counted."""

    async def as_of(self, lookup: Lookup, key: str, at: datetime) -> FactRow | None:
        """What :meth:`find` would have given at an instant, as far as facts are there today: the row with ``value``,
        ``confidence``, ``source_episode_id``, ``owner`` and ``valid_from`` of the version that was said last before or
        at that instant. What the fact says today counts from its own ``valid_from`` on, whatever versions came to it
        by a merging. A fact that was said later does not count."""

    async def read(self, ids: Sequence[str]) -> Sequence[FactRow]:
        """These facts, as far as they are there, in any order."""

    async def list(
        self, words: Sequence[str], filters: Filters, limit: int, after: FactPosition | None, person: str | None = None
    ) -> Sequence[FactRow]:
        """The first ``limit`` facts of up to four places after a position: by confidence, the largest first; of equal
        ones the newest first; of these by id. Without a pattern it reads no more rows than it returns, for each
        place. ``person`` is the one of the words whose person counts as the one for whom they stand. One statement; on
        MongoDB one command more for a person."""

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[str]:
        """The first ``limit`` ids after ``after`` of a person's facts, in all spaces, by id."""

    async def count(self) -> int:
        """How many facts there are."""

    async def confirm(self, space: str, fact_id: str, write_id: str, now: datetime) -> FactRow | None:
        """Move the confidence of a fact a fifth of the way to 1, ``confidence + (1.0 - confidence) / 5.0``, and count
        it; the fact as it is now."""

    async def contradict(self, space: str, fact_id: str, write_id: str, now: datetime) -> FactRow | None:
        """Multiply the confidence of a fact by 0.8, and count it; the fact as it is now."""

    async def versions(self, fact_id: str, limit: int, after: int) -> Sequence[VersionRow]:
        """The first ``limit`` versions of a fact with numbers after ``after``."""

    async def delete(self, ids: Sequence[str], written_by: Sequence[str] | None = None) -> int:
        """Delete facts with their versions and vectors; how many facts there were. With ``written_by``, only those
        whose last write is one of these: others were written since they were read, and stay."""

    async def delete_versions(self, names: Sequence[tuple[str, int]]) -> int:
        """Delete single versions, each by its fact and number; how many there were. Others keep their numbers."""

    async def versions_of_owner(self, owner: str, limit: int, after: tuple[str, int]) -> Sequence[tuple[str, int]]:
        """The first ``limit`` versions after one whose data is this person's, in all spaces, by fact and number."""

    async def page_of_versions(self, limit: int, after: tuple[str, int]) -> Sequence[VersionRow]:
        """The first ``limit`` versions of all facts after one, by fact and number."""

    async def count_versions(self) -> int:
        """How many versions there are."""

    async def count_versions_of(self, fact_ids: Sequence[str]) -> Mapping[str, int]:
        """How many versions each of these facts has, if it has any."""


class PeopleLog(Protocol):
    """The people of one store."""

    async def meet(self, row: UserRow) -> Met:
        """The person with the word of ``row``, who is made of it if there is none, without a ``telegram_id`` or an
        ``email`` that another one of the space has. One who is there, and stands for nobody else, gets its display name
        if they have none."""

    async def restore(self, row: UserRow) -> bool:
        """Store a person of an archive or of another store as they are; ``False``, and nothing is stored, if there is
        one with the id or the word, or another one has the same ``telegram_id`` or ``email`` in the space."""

    async def find(self, word: str) -> UserRow | None:
        """The person with this word, merged or not."""

    async def root(self, word: str) -> UserRow | None:
        """The person for whom the one with this word stands."""

    async def count_conversation(self, word: str, write_id: str, now: datetime) -> UserRow | None:
        """Add one conversation to the person for whom the one with this word stands; as they are now. Nothing is added
        if this write was the last one of the person."""

    async def merge(self, source: str, target: str, write_id: str, now: datetime) -> Merged:
        """Make the person with the word ``source`` stand for the one with the word ``target``, or for whom these stand.

        In one transaction: the source's facts move to the target's place. Where the target has the key, its fact stays,
        and becomes what :func:`~firefly_memory.longterm.rows.absorbed` says. The source's facts in other places, and
        versions of facts, belong to the target. Both people become what :func:`~firefly_memory.longterm.rows.joined`
        says, and everybody who stood for the source stands for the target. A fact that is written to the source at the
        same moment is not lost.

        ``same`` refuses a person who is to be merged into themselves, ``cycle`` a target who stands for the source. A
        source that stands for the target already changes nothing.
        """

    async def list(self, space: str, limit: int, after: Moment | None) -> Sequence[UserRow]:
        """The first ``limit`` people of a space after a moment, by ``first_seen``, equal ones by id."""

    async def page(self, limit: int, after: str) -> Sequence[UserRow]:
        """The first ``limit`` people of all spaces with ids after ``after``, by id."""

    async def read(self, ids: Sequence[str]) -> Sequence[UserRow]:
        """These people, as far as they are there, in any order."""

    async def same_people(self, canonical_ids: Sequence[str]) -> Sequence[UserRow]:
        """In all spaces: everybody with one of these ids, for whom they stand, and all who stand for the same. One
        step: what is found by an id of somebody who is found is not looked for."""

    async def count(self) -> int:
        """How many people there are."""

    async def delete(self, ids: Sequence[str], idle_since: datetime | None = None) -> int:
        """Delete people with their own facts, and all who stand for one of them; how many of ``ids`` were deleted. With
        ``idle_since``, only people who have no facts of their own, and whose row was not updated since then: for those
        who stand for another one, the other one counts."""


class LongTermLog(Protocol):
    """Long-term memory in one store."""

    @property
    def facts(self) -> FactLog: ...

    @property
    def people(self) -> PeopleLog: ...


LONG_TERM_LOG: LogOf[LongTermLog] = LogOf("longterm")
"""``view.log(LONG_TERM_LOG)``: the long-term memory of a store."""
