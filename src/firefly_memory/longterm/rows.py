"""Facts and people as they are stored: the columns of their tables, all texts in their stored form."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from firefly_memory.longterm.places import Place
from firefly_memory.search.filters import Comparison, Filter
from firefly_memory.search.index import Subject, Vector
from firefly_memory.tombstones.log import Identity, owner_identity

FACTS = Subject(
    "facts",
    "memory_facts",
    filters=(Filter("fact_type", Comparison.ONE_OF), Filter("confidence", Comparison.AT_LEAST)),
)
VERSIONS = "memory_fact_versions"
USERS = "memory_users"


class FactRow(NamedTuple):
    """A row of ``memory_facts``. The last fields are those by which it is found
    (:class:`~firefly_memory.search.index.Indexed`)."""

    id: str
    space: str
    fact_scope: str
    """``session``, ``user``, ``agent`` or ``global``."""
    scope_id: str
    key: str
    value: str
    """JSON text."""
    fact_type: str
    confidence: float
    times_confirmed: int
    times_contradicted: int
    source_episode_id: str | None
    owner: str | None
    """The person whose data it is."""
    versions: int
    """How many values it had before."""
    written_by: str
    """The id of the last write, by which a writer finds it after a lost reply."""
    access_count: int
    last_accessed: datetime | None
    valid_from: datetime
    created_at: datetime
    newest: datetime
    """When it was last written. To read it is no write."""
    scope: str
    """The word of its place. No two facts of one place have the same key."""
    who: str | None
    group_id: str | None
    position: int
    searchable: str
    """The key and the value in their searchable form, one line each."""
    words: Sequence[str]

    @property
    def identities(self) -> tuple[Identity, ...]:
        """What must not be erased if the fact is to be stored."""
        return () if self.owner is None else (owner_identity(self.owner),)

    @property
    def listed_at(self) -> FactPosition:
        """Its position in lists."""
        return FactPosition(self.confidence, self.newest, self.id)


class FactPosition(NamedTuple):
    """A position in lists of facts: the largest confidence first, of equal ones the newest, of these by id."""

    confidence: float
    newest: datetime
    id: str


class VersionRow(NamedTuple):
    """A row of ``memory_fact_versions``: what a fact said before."""

    fact_id: str
    number: int
    """From 1 on. Only those up to :attr:`FactRow.versions` count: a later one was left by a write that failed."""
    value: str
    confidence: float
    source_episode_id: str | None
    owner: str | None
    valid_from: datetime
    superseded_at: datetime


class UserRow(NamedTuple):
    """A row of ``memory_users``."""

    id: str
    space: str
    canonical_id: str
    word: str
    """That of the place of the person's own facts. No two people have the same."""
    telegram_id: str | None
    email: str | None
    display_name: str | None
    total_conversations: int
    last_conversation_at: datetime | None
    merged_into_id: str | None
    stands_for: str
    """The word of the person whom this one was merged into; its own if it was not."""
    written_by: str
    first_seen: datetime
    updated_at: datetime

    @property
    def is_merged(self) -> bool:
        """Whether it stands for another person."""
        return self.stands_for != self.word

    @property
    def identities(self) -> tuple[Identity, ...]:
        """What must not be erased if the person is to be stored."""
        return (owner_identity(self.canonical_id),)


class FactWrite(NamedTuple):
    """A fact that is to be stored."""

    row: FactRow
    """As it is if it is new."""
    vector: Vector | None
    overwrite: bool
    """Whether a fact that is there gets the value."""
    sets_type: bool
    """Whether it gets the type as well,"""
    sets_confidence: bool
    """and the confidence."""


Outcome = Literal["created", "updated", "skipped"]


class Written(NamedTuple):
    """What became of a :class:`FactWrite`."""

    row: FactRow
    """As it is now."""
    outcome: Outcome


class Filters(NamedTuple):
    """Which facts of some places are wanted."""

    pattern: tuple[str, ...] = ()
    """Words that the searchable key, or the searchable value, has in this order, with anything between them. No more
    than :func:`~firefly_memory.longterm.patterns.beginning_of` leaves."""
    types: tuple[str, ...] | None = None
    min_confidence: float | None = None


Refusal = Literal["unknown source", "unknown target", "same", "cycle"]


class Merged(NamedTuple):
    """What became of a merging."""

    row: UserRow | None
    """The person into whom the other one is merged now, or was before."""
    refusal: Refusal | None = None


class PersonMovedError(Exception):
    """A fact was to be stored in the place of a person who stands for another one."""

    def __init__(self, word: str, row: UserRow) -> None:
        """``word`` is that of the place, ``row`` the other person."""
        super().__init__(word, row)
        self.word = word
        self.row = row


def identities_of(row: FactRow, versions: Sequence[VersionRow]) -> set[Identity]:
    """What must not be erased if a fact is to be stored with these versions."""
    owners = (each.owner for each in versions if each.owner is not None)
    return {*row.identities, *map(owner_identity, owners)}


def with_version(old: FactRow, now: datetime) -> VersionRow:
    """What ``old`` says, as a version of the fact."""
    return VersionRow(
        fact_id=old.id,
        number=old.versions + 1,
        value=old.value,
        confidence=old.confidence,
        source_episode_id=old.source_episode_id,
        owner=old.owner,
        valid_from=old.valid_from,
        superseded_at=max(now, old.valid_from),
    )


def as_said(row: FactRow, version: VersionRow) -> FactRow:
    """A fact as it was when it said what one of its versions says."""
    return row._replace(
        value=version.value,
        confidence=version.confidence,
        source_episode_id=version.source_episode_id,
        owner=version.owner,
        valid_from=version.valid_from,
    )


def updated(old: FactRow, write: FactWrite) -> tuple[FactRow, VersionRow | None]:
    """What a fact that is there becomes by a write that overwrites it, and the version that it leaves behind if its
    value changes."""
    new = write.row
    changes = new.value != old.value
    version = with_version(old, new.newest) if changes else None
    source = new.source_episode_id if changes or new.source_episode_id is not None else old.source_episode_id
    row = old._replace(
        value=new.value,
        fact_type=new.fact_type if write.sets_type else old.fact_type,
        confidence=new.confidence if write.sets_confidence else old.confidence,
        times_confirmed=old.times_confirmed + 1,
        source_episode_id=source,
        owner=new.owner if changes else old.owner,
        versions=old.versions + 1 if changes else old.versions,
        written_by=new.written_by,
        valid_from=old.valid_from if version is None else version.superseded_at,
        newest=new.newest,
        searchable=new.searchable,
        words=new.words,
    )
    return row, version


def moved(row: FactRow, to: Place) -> FactRow:
    """A fact in the place of another person. The word of its place stands first among its words."""
    word = to.word
    return row._replace(scope_id=to.scope_id, owner=to.scope_id, scope=word, words=(word, *tuple(row.words)[1:]))


def absorbed(
    target: FactRow, source: FactRow, versions: Sequence[VersionRow], now: datetime
) -> tuple[FactRow, list[VersionRow]]:
    """What a person's fact becomes when that of another one with the same key is merged into it, and the versions that
    it gets: those of the other fact, and its value if that is another one. ``versions`` are those of ``source``."""
    said = [*versions, *([with_version(source, now)] if source.value != target.value else [])]
    added = [
        each._replace(fact_id=target.id, number=number, owner=target.owner)
        for number, each in enumerate(said, start=target.versions + 1)
    ]
    last = [each for each in (target.last_accessed, source.last_accessed) if each is not None]
    row = target._replace(
        times_confirmed=target.times_confirmed + source.times_confirmed,
        times_contradicted=target.times_contradicted + source.times_contradicted,
        access_count=target.access_count + source.access_count,
        last_accessed=max(last, default=None),
        versions=target.versions + len(added),
    )
    return row, added


def joined(source: UserRow, target: UserRow, write_id: str, now: datetime) -> tuple[UserRow, UserRow]:
    """Two people who are one from now on, the source and the target."""
    takes_telegram = target.telegram_id is None and source.telegram_id is not None
    takes_email = target.email is None and source.email is not None
    last = [each for each in (target.last_conversation_at, source.last_conversation_at) if each is not None]
    new_target = target._replace(
        telegram_id=source.telegram_id if takes_telegram else target.telegram_id,
        email=source.email if takes_email else target.email,
        display_name=target.display_name or source.display_name,
        total_conversations=target.total_conversations + source.total_conversations,
        last_conversation_at=max(last, default=None),
        first_seen=min(target.first_seen, source.first_seen),
        written_by=write_id,
        updated_at=now,
    )
    new_source = source._replace(
        telegram_id=None if takes_telegram else source.telegram_id,
        email=None if takes_email else source.email,
        merged_into_id=target.id,
        stands_for=target.word,
        written_by=write_id,
        updated_at=now,
    )
    return new_source, new_target


def already_one(source: str, target: str, root: UserRow) -> Merged:
    """Two people who are one already: whether that is what was asked for."""
    if source == target:
        return Merged(None, "same")
    if source == root.word:
        return Merged(None, "cycle")
    return Merged(root)
