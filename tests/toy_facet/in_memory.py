"""The notes in a dict."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from firefly_memory.facets import Purged
from firefly_memory.tombstones.in_memory import Memory
from tests.toy_facet.log import Note


class MemoryToyLog:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._notes: dict[str, Note] = {}

    def close(self) -> None:
        self._notes.clear()

    async def put(self, note: Note) -> None:
        with self._memory.lock:
            self._memory.tombstones.check("put_note", note.identities)
            self._notes[note.note_id] = note

    async def get(self, note_id: str, now: datetime) -> Note | None:
        note = self._notes.get(note_id)
        return note if note is not None and _is_live(note, now) else None

    async def page(self, limit: int, after: str, now: datetime) -> Sequence[Note]:
        live = (note for note in self._notes.values() if _is_live(note, now))
        return sorted(note for note in live if note.note_id > after)[:limit]

    async def search(self, word: str, now: datetime) -> Sequence[str]:
        live = (note for note in self._notes.values() if _is_live(note, now))
        return sorted(note.note_id for note in live if word in re.findall(r"\w+", note.body))

    async def delete(self, note_ids: Sequence[str], now: datetime) -> int:
        there = [note_id for note_id in note_ids if await self.get(note_id, now) is not None]
        for note_id in there:
            del self._notes[note_id]
        return len(there)

    async def purge(self, limit: int, now: datetime) -> Purged:
        expired = [note_id for note_id, note in self._notes.items() if not _is_live(note, now)]
        for note_id in expired:
            del self._notes[note_id]
        return Purged(len(expired), more=False)

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[str]:
        notes = self._notes.values()
        return sorted(note.note_id for note in notes if note.owner == owner and note.note_id > after)[:limit]

    async def erase(self, note_ids: Sequence[str]) -> int:
        return sum(self._notes.pop(note_id, None) is not None for note_id in note_ids)


def _is_live(note: Note, now: datetime) -> bool:
    return note.expires_at is None or note.expires_at > now
