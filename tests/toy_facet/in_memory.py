"""The notes in a dict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from firefly_memory.facets import Purged
from firefly_memory.search.in_memory import MemorySearchIndex
from firefly_memory.search.index import SearchIndex, Vector
from firefly_memory.tombstones.in_memory import Memory
from tests.toy_facet.log import Note, NoteRow, row_of, subject
from tests.toy_facet.numbered import numbered


class MemoryToyLog:
    def __init__(self, number: int, memory: Memory) -> None:
        self._memory = memory
        self._rows: dict[str, NoteRow] = {}
        self._index = MemorySearchIndex(subject(number), self._rows, memory.lock)

    def close(self) -> None:
        with self._memory.lock:
            self._index.close()
            self._rows.clear()

    @property
    def index(self) -> SearchIndex:
        return self._index

    async def put(self, note: Note, vector: Vector | None = None) -> None:
        row = row_of(note)
        with self._memory.lock:
            self._memory.tombstones.check("put_note", note.identities)
            self._remove([note.note_id])
            self._rows[row.id] = row
            self._index.add(row)
            if vector is not None:
                self._index.add_vector(row, vector)

    async def get(self, note_id: str, now: datetime) -> Note | None:
        return next(iter(await self.read([note_id], now)), None)

    async def read(self, note_ids: Sequence[str], now: datetime) -> Sequence[Note]:
        with self._memory.lock:
            there = (self._rows[each] for each in note_ids if each in self._rows)
            return [row.note for row in there if _is_live(row, now)]

    async def page(self, limit: int, after: str, now: datetime) -> Sequence[Note]:
        with self._memory.lock:
            return sorted(row.note for row in self._rows.values() if row.id > after and _is_live(row, now))[:limit]

    async def delete(self, note_ids: Sequence[str], now: datetime) -> int:
        with self._memory.lock:
            return self._remove([each for each in note_ids if each in self._rows and _is_live(self._rows[each], now)])

    async def purge(self, limit: int, now: datetime) -> Purged:
        with self._memory.lock:
            expired = [row.id for row in self._rows.values() if not _is_live(row, now)]
            return Purged(self._remove(expired), more=False)

    async def of_owner(self, owner: str, limit: int, after: str) -> Sequence[str]:
        with self._memory.lock:
            return sorted(row.id for row in self._rows.values() if row.owner == owner and row.id > after)[:limit]

    async def erase(self, note_ids: Sequence[str]) -> int:
        with self._memory.lock:
            return self._remove(note_ids)

    def _remove(self, note_ids: Iterable[str]) -> int:
        removed = [row for each in note_ids if (row := self._rows.pop(each, None)) is not None]
        for row in removed:
            self._index.remove(row)
        return len(removed)


def _is_live(row: NoteRow, now: datetime) -> bool:
    return row.expires_at is None or row.expires_at > now


def __getattr__(name: str) -> Any:
    return numbered(name, {"log": lambda number: lambda memory: MemoryToyLog(number, memory)})
