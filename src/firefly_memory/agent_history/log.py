"""What every backend does with dialogues, the conversations of pydantic-ai's ``ConversationStore``.

A dialogue says where its history ends; its entries are a tree that dialogues share, each pointing at the one before
it. ``holders`` of an entry counts the entries right after it, and the dialogues of which it is the head or the end of a
branch. To append to a history changes no count but those of the new entries; to fork adds one, and whoever deletes
goes up from the ends and stops where somebody else goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from firefly_memory.codec import damaged
from firefly_memory.errors import CorruptDataError
from firefly_memory.facets import LogOf, Purged
from firefly_memory.identifiers import original_name

T = TypeVar("T")


class Dialogue(NamedTuple):
    """A dialogue as it is stored, its ids in the form of :func:`~firefly_memory.identifiers.stored_text`."""

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
        """The entries that it holds."""
        return ends_of(self.head_id, self.branches)


class DialogueEntry(NamedTuple):
    """A message and its place."""

    entry_id: str
    parent_id: str | None
    kind: str
    message: str


def checked_dialogue(dialogue: Dialogue) -> Dialogue:
    """``dialogue``; ``TypeError`` for a field that holds something else."""
    texts = (dialogue.conversation_id, dialogue.revision, dialogue.usage, *_listed(dialogue.branches))
    more = (
        dialogue.head_id, dialogue.scope, dialogue.forked_from, dialogue.forked_at, dialogue.deferred_tool_requests
    )  # fmt: skip
    _check_texts(texts, more)
    if not isinstance(dialogue.format_version, int):
        raise TypeError("format_version is no whole number")
    return dialogue


def checked_entry(entry: DialogueEntry) -> DialogueEntry:
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
    """The error for what is stored of a dialogue or an entry."""
    shown = original_name(name) if isinstance(name, str) else name
    return damaged("reading a conversation", f"{what} {shown!r}", exc)


class DialogueLog(Protocol):
    """The hooks. Each is done whole or not at all."""

    async def record(self, conversation_id: str) -> Dialogue | None:
        """One dialogue."""

    async def records(self, scope: str | None, limit: int | None) -> Sequence[Dialogue]:
        """The newest first, of a scope or of all."""

    async def page(self, limit: int, after: str) -> Sequence[Dialogue]:
        """The first ``limit`` of those with ids after ``after``, by id in the order of code points."""

    async def write(self, dialogue: Dialogue, entries: Sequence[DialogueEntry], expected: str | None) -> bool:
        """Store both, if the revision is the ``expected`` one, none if there is none, and the head is there."""

    async def delete(self, conversation_id: str, expected: str) -> bool:
        """Delete the dialogue of that revision, and the entries that nobody holds any more."""

    async def history(self, head_id: str, limit: int | None) -> Sequence[DialogueEntry]:
        """``head_id`` and the entries before it, up to ``limit``, in any order, and perhaps some others.
        ``CorruptDataError`` if one of them comes again before itself."""

    async def entries(self, entry_ids: Sequence[str]) -> Sequence[DialogueEntry]:
        """Those of these entries that are there, in any order."""

    async def shared(self, entry_ids: Sequence[str]) -> Sequence[str]:
        """Those of these entries that have several holders: where histories meet."""

    async def go_on_deleting(self) -> bool:
        """Delete some of the entries that are left of a deletion that broke off; whether there may be more."""


class Ascent:
    """The way up from an entry, from each to its parent, as far as ``limit``. It ends at an entry that is met twice,
    however the entries came to be there: with ``CorruptDataError``."""

    def __init__(self, head_id: str, limit: int | None) -> None:
        self._head_id = head_id
        self._limit = limit
        self._met: dict[str, DialogueEntry] = {}
        self._above: str | None = head_id

    @property
    def next(self) -> str | None:
        """The entry that is wanted now, ``None`` if there are enough."""
        return self._above if self._limit is None or len(self._met) < self._limit else None

    @property
    def left(self) -> int | None:
        """How many are wanted, ``None`` for all."""
        return None if self._limit is None else self._limit - len(self._met)

    @property
    def entries(self) -> list[DialogueEntry]:
        """Those that were met, the newest first."""
        return list(self._met.values())

    def go_on(self, found: Mapping[str, T], read: Callable[[T], DialogueEntry]) -> None:
        """As far up as what was ``found`` goes; each of it is ``read`` when it is reached."""
        while (entry_id := self.next) is not None and entry_id in found:
            if entry_id in self._met:
                raise goes_in_a_circle(self._head_id, entry_id)
            entry = self._met[entry_id] = read(found[entry_id])
            self._above = entry.parent_id


class CircleDetector:
    """Sees that a way up goes in a circle before it was gone three times, and remembers one entry for that (Brent)."""

    def __init__(self, head_id: str) -> None:
        self._head_id = head_id
        self._remembered: str | None = None
        self._steps, self._until = 0, 1

    def pass_by(self, entry_id: str) -> None:
        """``CorruptDataError`` for an entry that was met before."""
        if entry_id == self._remembered:
            raise goes_in_a_circle(self._head_id, entry_id)
        self._steps += 1
        if self._steps == self._until:
            self._remembered, self._until = entry_id, self._until * 2


def goes_in_a_circle(head_id: str, entry_id: str) -> CorruptDataError:
    where = f"the history of entry {original_name(head_id)!r}"
    return CorruptDataError("read_history", where, f"entry {original_name(entry_id)!r} comes before itself")


def in_line(found: Iterable[DialogueEntry], head_id: str, limit: int | None) -> list[DialogueEntry]:
    """What :meth:`DialogueLog.history` found, oldest first. ``KeyError`` names the entry that is missing."""
    ascent = Ascent(head_id, limit)
    ascent.go_on({entry.entry_id: entry for entry in found}, lambda entry: entry)
    if ascent.next is not None:
        raise KeyError(original_name(ascent.next))
    return ascent.entries[::-1]


def in_a_circle(entries: Iterable[DialogueEntry]) -> str | None:
    """One of these entries that comes before itself."""
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


def ends_of(head_id: str | None, branches: Iterable[str]) -> frozenset[str]:
    return frozenset(branches) if head_id is None else frozenset((head_id, *branches))


def holders_gained(before: frozenset[str], after: frozenset[str], entries: Iterable[DialogueEntry]) -> Counter[str]:
    """By how much the holders of each entry change when a dialogue is written."""
    gained = Counter(after)
    gained.subtract(before)
    gained.update(entry.parent_id for entry in entries if entry.parent_id is not None)
    return gained


def released(found: Mapping[str, tuple[str | None, int]]) -> tuple[list[str], dict[str, int]]:
    """Which of the entries ``found``, given by parent and holders, nobody holds, and those to go on from: what is
    still there of their parents, and how many holders these lose."""
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


async def finish_deletions(log: DialogueLog, _limit: int, _now: datetime) -> Purged:
    """Go on with deletions that broke off; nothing of it counts as expired."""
    return Purged(0, more=await log.go_on_deleting())


AGENT_HISTORY_LOG: LogOf[DialogueLog] = LogOf("agent_history")
"""``view.log(AGENT_HISTORY_LOG)``: the conversations of pydantic-ai in a store that can keep them."""
