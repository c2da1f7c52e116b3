"""The records of one namespace, in order: what the in-memory store holds and a file of the file store contains."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from datetime import datetime

from firefly_memory.stores.records import Position, Record


def is_live(record: Record, now: datetime) -> bool:
    return record.expires_at is None or record.expires_at > now


class Shelf:
    """Records by id, by key and by position. Not safe for threads: its owner holds the lock."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records: dict[str, Record] = {}
        self._order: list[Position] = []
        self._order_of_key: dict[str, list[Position]] = {}
        for record in records:
            self._insert(record)

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

    def remove(self, entry_id: str) -> Record:
        record = self._records.pop(entry_id)
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

    def has_live(self, now: datetime) -> bool:
        return any(is_live(record, now) for record in self._records.values())

    def count(self, now: datetime) -> int:
        return sum(is_live(record, now) for record in self._records.values())

    def _insert(self, record: Record) -> None:
        self._records[record.entry_id] = record
        insort(self._order, record.position)
        if record.key is not None:
            insort(self._order_of_key.setdefault(record.key, []), record.position)
