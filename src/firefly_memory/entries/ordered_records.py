"""The records of one namespace, in order: what the in-memory store holds and a file of the file store contains."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from pydantic_core import to_json

from firefly_memory.entries.record import Position, Record
from firefly_memory.protocols import ABSENT, SAME_METADATA


def is_live(record: Record, now: datetime) -> bool:
    return record.expires_at is None or record.expires_at > now


def is_as_expected(record: Record | None, new: Record, expected: Any, now: datetime) -> bool:
    """Whether a live record has the content ``expected`` or, for ``SAME_METADATA``, the metadata of ``new``; for
    ``ABSENT``, whether there is none."""
    if record is None or not is_live(record, now):
        return expected is ABSENT
    if expected is SAME_METADATA:
        return to_json(record.metadata) == to_json(new.metadata)
    # As JSON text, in which 1 and 1.0, and other orders of keys, differ.
    return expected is not ABSENT and to_json(record.content) == to_json(expected)


class OrderedRecords:
    """Records by id, by key and by position. Not safe for threads: its owner holds the lock.

    ``ValueError`` if two of ``records`` have one id.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records: dict[str, Record] = {}
        self._order: list[Position] = []
        self._order_of_key: dict[str, list[Position]] = {}
        for record in records:
            if record.entry_id in self._records:
                raise ValueError(f"entry_id {record.entry_id!r} occurs twice")
            self._insert(record)
        self.changed = False
        """Whether anything was put in or taken out since."""

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        """Every record, live or not, in order."""
        return (self._records[position.entry_id] for position in self._order)

    def __getitem__(self, entry_id: str) -> Record:
        return self._records[entry_id]

    def put(self, record: Record, now: datetime) -> None:
        """Insert, or replace all but ``created_at`` of the live record with that id."""
        if record.entry_id in self._records:
            earlier = self.remove(record.entry_id)
            if is_live(earlier, now):
                record = record._replace(created_at=earlier.created_at)
        self._insert(record)

    def put_if(self, record: Record, expected: Any, now: datetime) -> bool:
        """:meth:`put`, if the record with that id :func:`is_as_expected`."""
        fits = is_as_expected(self._records.get(record.entry_id), record, expected, now)
        if fits:
            self.put(record, now)
        return fits

    def remove(self, entry_id: str) -> Record:
        record = self._records.pop(entry_id)
        self.changed = True
        del self._order[bisect_left(self._order, record.position)]
        if record.key is not None:
            positions = self._order_of_key[record.key]
            del positions[bisect_left(positions, record.position)]
            if not positions:
                del self._order_of_key[record.key]
        return record

    def scan(self, limit: int | None, after: Position | None, now: datetime) -> list[Record]:
        found: list[Record] = []
        for index in range(0 if after is None else bisect_right(self._order, after), len(self._order)):
            if limit is not None and len(found) == limit:
                break
            record = self._records[self._order[index].entry_id]
            if is_live(record, now):
                found.append(record)
        return found

    def newest(self, key: str, now: datetime) -> Record | None:
        for position in reversed(self._order_of_key.get(key, ())):
            record = self._records[position.entry_id]
            if is_live(record, now):
                return record
        return None

    def delete(self, entry_ids: Iterable[str], now: datetime) -> list[Record]:
        """Remove the live records among ``entry_ids``, and return them."""
        here = [entry_id for entry_id in entry_ids if entry_id in self._records]
        return [self.remove(entry_id) for entry_id in here if is_live(self._records[entry_id], now)]

    def expired(self, limit: int, now: datetime) -> list[Record]:
        found: list[Record] = []
        for record in self._records.values():
            if len(found) == limit:
                break
            if not is_live(record, now):
                found.append(record)
        return found

    def purge(self, limit: int, now: datetime) -> int:
        """Remove up to ``limit`` records that are not live, and return how many they were."""
        doomed = self.expired(limit, now)
        for record in doomed:
            self.remove(record.entry_id)
        return len(doomed)

    def clear(self) -> None:
        self._records.clear()
        self._order.clear()
        self._order_of_key.clear()
        self.changed = True

    def has_live(self, now: datetime) -> bool:
        return any(is_live(record, now) for record in self._records.values())

    def count(self, now: datetime) -> int:
        return sum(is_live(record, now) for record in self._records.values())

    def _insert(self, record: Record) -> None:
        self._records[record.entry_id] = record
        self.changed = True
        insort(self._order, record.position)
        if record.key is not None:
            insort(self._order_of_key.setdefault(record.key, []), record.position)
