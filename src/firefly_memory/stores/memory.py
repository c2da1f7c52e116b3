"""``InMemoryStore``: for tests and short-lived sessions. Keeps encoded records: no kinder than a database."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from firefly_memory.codec import TEXT, Form
from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.entries.ordered_records import OrderedRecords, is_as_expected, is_live
from firefly_memory.entries.record import Position, Record, as_it_is
from firefly_memory.entries.scopes import identities_of_namespace
from firefly_memory.entries.store_operations import RecordView
from firefly_memory.errors import EntryOwnershipError, StoreClosedError
from firefly_memory.facets import FacetLogs, Purged
from firefly_memory.identifiers import original_name
from firefly_memory.likely_names import answers_guesses
from firefly_memory.protocols import ABSENT, Capability
from firefly_memory.reprs import even_half_built
from firefly_memory.stores.base import EntryStore
from firefly_memory.tombstones.in_memory import MemoryTombstones
from firefly_memory.validation import at_least


class InMemoryStore(EntryStore):
    """Entries in a dict, gone with the process. After a ``fork()`` the child has a copy of its own.

    ``max_turns_kept`` bounds the evicted turns that each conversation keeps: those that its summary stands for and that
    are no longer replayed. Without it all turns stay until their conversation is cleared; a server that summarizes long
    conversations wants a bound, or its memory grows with every turn. Beyond the bound the oldest are dropped for good,
    with their idempotency keys. The turns after them keep their numbers, ``get_turns()`` begins with the first
    that is there, and what would need a dropped one raises ``TurnsDroppedError``.
    """

    @answers_guesses
    def __init__(self, *, max_turns_kept: int | None = None) -> None:
        self._max_turns_kept = None if max_turns_kept is None else at_least(0, "max_turns_kept", max_turns_kept)
        view = RecordView(_MemoryBackend(self._max_turns_kept))
        super().__init__(view, view)  # nothing here ever waits

    @even_half_built
    def __repr__(self) -> str:
        bound = "" if self._max_turns_kept is None else f"max_turns_kept={self._max_turns_kept}"
        return f"InMemoryStore({bound})"


class _MemoryBackend:
    form: Form = TEXT
    read_instant = staticmethod(as_it_is)
    capabilities = frozenset({Capability.UNIQUE_IDS, Capability.ATOMIC_BATCHES, Capability.LISTING})

    def __init__(self, max_turns_kept: int | None) -> None:
        self._ordered: dict[str, OrderedRecords] = {}
        self._names: list[str] = []  # the keys of _ordered, sorted
        self._namespace_of: dict[str, str] = {}
        self._closed = False
        self.lock = ForkSafeLock()
        """Held by whoever writes, in every facet: so tombstones, which each of them looks at, come between writes."""
        self.tombstones = MemoryTombstones()
        self.max_turns_kept = max_turns_kept
        self.log = FacetLogs("in_memory", self._made)

    def _made(self, log: Any) -> Any:
        made = log(self)
        if self._closed:
            made.close()
        return made

    async def initialize(self, migrate: bool | None) -> None:
        self._check_open("initialize")

    async def close(self) -> None:
        with self.lock:
            self._closed = True
            self._ordered.clear()
            self._names.clear()
            self._namespace_of.clear()
        for log in self.log.made():
            log.close()

    async def save(self, record: Record, now: datetime) -> None:
        await self.save_many([record], now)

    async def save_many(self, records: list[Record], now: datetime) -> None:
        with self.lock:
            self._check_open("save")
            self.tombstones.check("save", identities_of_namespace(records[0].namespace))
            for record in records:
                self._check_owner(record, now)
            self._put(records, now)

    async def save_if(self, record: Record, expected: Any, now: datetime) -> bool:
        with self.lock:
            self._check_open("save_if")
            self.tombstones.check("save_if", identities_of_namespace(record.namespace))
            owner = self._namespace_of.get(record.entry_id)
            there = None if owner is None else self._ordered[owner][record.entry_id]
            is_elsewhere = expected is not ABSENT and owner != record.namespace
            if is_elsewhere or not is_as_expected(there, record, expected, now):
                return False
            self._check_owner(record, now)
            self._put([record], now)
            return True

    def records(self) -> Iterator[Record]:
        """Every entry, live or not. The caller holds the lock."""
        for ordered in self._ordered.values():
            yield from ordered

    def _put(self, records: list[Record], now: datetime) -> None:
        for record in records:
            ordered = self._ordered.get(record.namespace)
            if ordered is None:
                ordered = self._ordered[record.namespace] = OrderedRecords()
                insort(self._names, record.namespace)
            self._namespace_of[record.entry_id] = record.namespace
            ordered.put(record, now)

    async def scan(self, namespace: str, limit: int | None, after: Position | None, now: datetime) -> list[Record]:
        with self.lock:
            self._check_open("load")
            ordered = self._ordered.get(namespace)
            return [] if ordered is None else ordered.scan(limit, after, now)

    async def scan_several(self, namespaces: list[str], now: datetime) -> list[Record]:
        return [record for namespace in namespaces for record in await self.scan(namespace, None, None, now)]

    async def newest(self, namespace: str, key: str, now: datetime) -> Record | None:
        with self.lock:
            self._check_open("load_by_key")
            ordered = self._ordered.get(namespace)
            return None if ordered is None else ordered.newest(key, now)

    async def delete(self, namespace: str, entry_id: str, now: datetime) -> None:
        await self.delete_many(namespace, [entry_id], now)

    async def delete_many(self, namespace: str, entry_ids: list[str], now: datetime) -> int:
        with self.lock:
            self._check_open("delete")
            ordered = self._ordered.get(namespace)
            deleted = [] if ordered is None else ordered.delete(entry_ids, now)
            self._forget(deleted)
            return len(deleted)

    async def clear(self, namespace: str) -> None:
        with self.lock:
            self._check_open("clear")
            self._clear([namespace] if namespace in self._ordered else [])

    async def clear_all_of(self, prefix: str) -> None:
        """Clear all namespaces that begin with ``prefix``."""
        with self.lock:
            self._check_open("clear_all")
            self._clear([name for name in self._names if name.startswith(prefix)])

    def _clear(self, namespaces: list[str]) -> None:
        for namespace in namespaces:
            for record in self._ordered[namespace]:
                del self._namespace_of[record.entry_id]
            self._drop_namespace(namespace)

    async def count(self, namespace: str, now: datetime) -> int:
        with self.lock:
            self._check_open("count")
            ordered = self._ordered.get(namespace)
            return 0 if ordered is None else ordered.count(now)

    async def namespaces(self, prefix: str, limit: int, after: str, now: datetime) -> list[str]:
        found: list[str] = []
        with self.lock:
            self._check_open("namespaces")
            start = max(bisect_right(self._names, after), bisect_left(self._names, prefix))
            for name in self._names[start:]:
                if len(found) == limit or not name.startswith(prefix):
                    break
                if self._ordered[name].has_live(now):
                    found.append(name)
        return found

    async def purge(self, limit: int, now: datetime) -> Purged:
        with self.lock:
            self._check_open("cleanup_expired")
            deleted: list[Record] = []
            for ordered in self._ordered.values():
                deleted += ordered.expired(limit - len(deleted), now)
            for record in deleted:
                self._ordered[record.namespace].remove(record.entry_id)
            self._forget(deleted)
            return Purged(len(deleted), more=len(deleted) == limit)

    def _check_open(self, operation: str) -> None:
        if self._closed:
            raise StoreClosedError(operation)

    def _check_owner(self, record: Record, now: datetime) -> None:
        owner = self._namespace_of.get(record.entry_id)
        if owner is None or owner == record.namespace:
            return
        if is_live(self._ordered[owner][record.entry_id], now):
            raise EntryOwnershipError(original_name(record.entry_id), original_name(record.namespace))
        self._forget([self._ordered[owner].remove(record.entry_id)])

    def _forget(self, records: Iterable[Record]) -> None:
        """Drop what is left of removed records outside their ordered."""
        for record in records:
            del self._namespace_of[record.entry_id]
            if record.namespace in self._ordered and not len(self._ordered[record.namespace]):
                self._drop_namespace(record.namespace)

    def _drop_namespace(self, namespace: str) -> None:
        del self._ordered[namespace]
        del self._names[bisect_left(self._names, namespace)]
