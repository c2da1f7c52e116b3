"""Agent history: the conversations of pydantic-ai's ``ConversationStore``, and what every backend does with them.

A record is one conversation, and says where its history ends. An entry is one message, and points at the entry before
it. Records share entries, so that all entries are a forest of trees. ``holders`` of an entry counts the entries right
after it, and the records whose head or end of a branch it is. Appending to a history sets the counts of the new entries
only. Forking adds one holder to one entry. A deletion goes up from the ends of its record, and stops at entries that
others hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from firefly_memory.codec import damaged
from firefly_memory.errors import ConflictError, CorruptDataError
from firefly_memory.facets import LogOf, Purged
from firefly_memory.identifiers import original_name
from firefly_memory.tombstones.log import Identity, history_identity, owner_identity

T = TypeVar("T")

_ATTEMPTS = 20  # each that fails means that somebody else wrote the record


class HistoryRecord(NamedTuple):
    """A conversation as it is stored, with ids in the form of :func:`~firefly_memory.identifiers.stored_text`."""

    conversation_id: str
    revision: str
    head_id: str | None
    scope: str | None
    forked_from: str | None
    forked_at: str | None
    branches: list[str]
    usage: str
    deferred_tool_requests: str | None
    updated_at: datetime
    format_version: int

    @property
    def ends(self) -> frozenset[str]:
        """The entries that the record holds."""
        return ends_of(self.head_id, self.branches)


class HistoryEntry(NamedTuple):
    """A message, and the entry before it."""

    entry_id: str
    parent_id: str | None
    kind: str
    message: str


def checked_record(record: HistoryRecord) -> HistoryRecord:
    """``record``, or ``TypeError`` for a field of another type."""
    texts = (record.conversation_id, record.revision, record.usage, *_listed(record.branches))
    more = (
        record.head_id, record.scope, record.forked_from, record.forked_at, record.deferred_tool_requests
    )  # fmt: skip
    _check_texts(texts, more)
    if not isinstance(record.format_version, int):
        raise TypeError("format_version is no whole number")
    return record


def checked_entry(entry: HistoryEntry) -> HistoryEntry:
    """``entry``, or ``CorruptDataError``."""
    try:
        _check_texts((entry.entry_id, entry.kind, entry.message), (entry.parent_id,))
    except TypeError as exc:
        raise damaged_history("entry", entry.entry_id, exc) from exc
    return entry


def _listed(branches: Any) -> list[Any]:
    if not isinstance(branches, list):
        raise TypeError("the branches are no list")
    return branches


def _check_texts(texts: Iterable[Any], or_none: Iterable[Any]) -> None:
    for value in (*texts, *(each for each in or_none if each is not None)):
        if not isinstance(value, str):
            raise TypeError(f"a field holds {type(value).__name__} in place of text")


def damaged_history(what: str, name: Any, exc: Exception) -> CorruptDataError:
    """The error for a damaged record or entry."""
    shown = original_name(name) if isinstance(name, str) else name
    return damaged("reading a conversation", f"{what} {shown!r}", exc)


class HistoryLog(Protocol):
    """The operations of agent history. Each is done completely or not at all."""

    async def record(self, conversation_id: str) -> HistoryRecord | None:
        """One record."""

    async def records(self, scope: str | None, limit: int | None) -> Sequence[HistoryRecord]:
        """The records of a scope, or all; the newest first."""

    async def page(self, limit: int, after: str) -> Sequence[HistoryRecord]:
        """The first ``limit`` records with ids after ``after``, by id in the order of code points."""

    async def write(self, record: HistoryRecord, entries: Sequence[HistoryEntry], expected: str | None) -> bool:
        """Store the record and its new entries, if the stored revision is ``expected`` (``None``: no record is stored)
        and the head exists."""

    async def delete(self, conversation_id: str, expected: str) -> bool:
        """Delete the record, if its revision is ``expected``, and the entries that lose their last holder."""

    async def history(self, head_id: str, limit: int | None) -> Sequence[HistoryEntry]:
        """``head_id`` and the entries before it, at most ``limit``, in any order, and perhaps some others.
        ``CorruptDataError`` if an entry comes before itself."""

    async def entries(self, entry_ids: Sequence[str]) -> Sequence[HistoryEntry]:
        """Those of these entries that exist, in any order."""

    async def shared(self, entry_ids: Sequence[str]) -> Sequence[str]:
        """The ids of those of these entries that have several holders: histories meet there."""

    async def go_on_deleting(self) -> bool:
        """Delete some entries that an interrupted deletion left; whether there may be more."""


class Ascent:
    """The way up from an entry, from each entry to its parent, at most ``limit`` entries. It raises
    ``CorruptDataError`` at an entry that it meets twice."""

    def __init__(self, head_id: str, limit: int | None) -> None:
        self._head_id = head_id
        self._limit = limit
        self._met: dict[str, HistoryEntry] = {}
        self._above: str | None = head_id

    @property
    def next(self) -> str | None:
        """The entry to read now, or ``None`` if there are enough."""
        return self._above if self._limit is None or len(self._met) < self._limit else None

    @property
    def left(self) -> int | None:
        """How many entries are still wanted, or ``None`` for all."""
        return None if self._limit is None else self._limit - len(self._met)

    @property
    def entries(self) -> list[HistoryEntry]:
        """The entries so far, the newest first."""
        return list(self._met.values())

    def go_on(self, found: Mapping[str, T], read: Callable[[T], HistoryEntry]) -> None:
        """Go up as far as ``found`` reaches. ``read`` makes each entry when it is reached."""
        while (entry_id := self.next) is not None and entry_id in found:
            if entry_id in self._met:
                raise goes_in_a_circle(self._head_id, entry_id)
            entry = self._met[entry_id] = read(found[entry_id])
            self._above = entry.parent_id


class CircleDetector:
    """Detects a circle before it is passed three times. It remembers only one entry (Brent's algorithm)."""

    def __init__(self, head_id: str) -> None:
        self._head_id = head_id
        self._remembered: str | None = None
        self._steps, self._until = 0, 1

    def pass_by(self, entry_id: str) -> None:
        """``CorruptDataError`` for the remembered entry."""
        if entry_id == self._remembered:
            raise goes_in_a_circle(self._head_id, entry_id)
        self._steps += 1
        if self._steps == self._until:
            self._remembered, self._until = entry_id, self._until * 2


def goes_in_a_circle(head_id: str, entry_id: str) -> CorruptDataError:
    where = f"the history of entry {original_name(head_id)!r}"
    return CorruptDataError("read_history", where, f"entry {original_name(entry_id)!r} comes before itself")


def in_line(found: Iterable[HistoryEntry], head_id: str, limit: int | None) -> list[HistoryEntry]:
    """The result of :meth:`HistoryLog.history`, oldest first. ``KeyError`` names a missing entry."""
    ascent = Ascent(head_id, limit)
    ascent.go_on({entry.entry_id: entry for entry in found}, lambda entry: entry)
    if ascent.next is not None:
        raise KeyError(original_name(ascent.next))
    return ascent.entries[::-1]


def in_a_circle(entries: Iterable[HistoryEntry]) -> str | None:
    """One of these entries that comes before itself, or ``None``."""
    parents = {entry.entry_id: entry.parent_id for entry in entries}
    while parents:
        way: dict[str, None] = {}
        entry_id: str | None = next(iter(parents))
        while entry_id in parents and entry_id not in way:
            way[entry_id] = None
            entry_id = parents[entry_id]
        if entry_id in way:
            return entry_id
        for each in way:
            del parents[each]
    return None


def identities_of(record: HistoryRecord) -> tuple[Identity, ...]:
    """What must not be erased if the record is to be stored."""
    itself = history_identity(record.conversation_id)
    return (itself,) if record.scope is None else (itself, owner_identity(record.scope))


def ends_of(head_id: str | None, branches: Iterable[str]) -> frozenset[str]:
    return frozenset(branches) if head_id is None else frozenset((head_id, *branches))


def holders_gained(before: frozenset[str], after: frozenset[str], entries: Iterable[HistoryEntry]) -> Counter[str]:
    """By how much the holders of each entry change when a record is written."""
    gained = Counter(after)
    gained.subtract(before)
    gained.update(entry.parent_id for entry in entries if entry.parent_id is not None)
    return gained


def released(found: Mapping[str, tuple[str | None, int]]) -> tuple[list[str], dict[str, int]]:
    """The entries without holders among ``found`` (each with its parent and its number of holders), and the parents
    that stay, with the number of holders that each loses."""
    gone = [entry_id for entry_id, (_, holders) in found.items() if holders == 0]
    lost: Counter[str] = Counter()
    for entry_id in gone:  # which grows meanwhile
        parent_id = found[entry_id][0]
        if parent_id is not None:
            lost[parent_id] += 1
            if parent_id in found and found[parent_id][1] == lost[parent_id]:
                gone.append(parent_id)
    for entry_id in gone:
        lost.pop(entry_id, None)
    return gone, dict(sorted(lost.items()))


async def delete_record(log: HistoryLog, conversation_id: str) -> bool:
    """Delete a record, also if others write it meanwhile; whether there was one."""
    for _ in range(_ATTEMPTS):
        record = await log.record(conversation_id)
        if record is None:
            return False
        if await log.delete(conversation_id, record.revision):
            return True
    name = original_name(conversation_id)
    raise ConflictError(f"conversation {name!r} is being written all the time; try again later")


async def finish_deletions(log: HistoryLog, _limit: int, _now: datetime) -> Purged:
    """Go on with interrupted deletions. None of these entries counts as expired."""
    return Purged(0, more=await log.go_on_deleting())


AGENT_HISTORY_LOG: LogOf[HistoryLog] = LogOf("agent_history")
"""``view.log(AGENT_HISTORY_LOG)``: agent history, in a store that can keep it."""
