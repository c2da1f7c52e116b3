"""What every backend does with dialogues, the conversations of pydantic-ai's ``ConversationStore``.

A dialogue says where its history ends; its entries are a tree that dialogues share, each pointing at the one before
it. ``holders`` of an entry counts the entries right after it, and the dialogues of which it is the head or the end of a
branch. To append to a history changes no count but those of the new entries; to fork adds one, and whoever deletes
goes up from the ends and stops where somebody else goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from firefly_memory.names import original_name


class Dialogue(NamedTuple):
    """A dialogue as it is stored, its ids in the form of :func:`~firefly_memory.names.stored_text`."""

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
        """``head_id`` and the entries before it, up to ``limit``, in any order, and perhaps some others."""

    async def entries(self, entry_ids: Sequence[str]) -> Sequence[DialogueEntry]:
        """Those of these entries that are there, in any order."""

    async def shared(self, entry_ids: Sequence[str]) -> Sequence[str]:
        """Those of these entries that have several holders: where histories meet."""


def in_line(found: Iterable[DialogueEntry], head_id: str, limit: int | None) -> list[DialogueEntry]:
    """What :meth:`DialogueLog.history` found, oldest first. ``KeyError`` names the entry that is missing."""
    by_id = {entry.entry_id: entry for entry in found}
    line: list[DialogueEntry] = []
    entry_id: str | None = head_id
    while entry_id is not None and (limit is None or len(line) < limit):
        if entry_id not in by_id:
            raise KeyError(original_name(entry_id))
        line.append(by_id[entry_id])
        entry_id = line[-1].parent_id
    return line[::-1]


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
