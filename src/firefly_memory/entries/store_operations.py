"""The operations of a store, written once over any backend of either mode."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from firefly_memory import clock
from firefly_memory.concurrency.cancellation import stop_if_given_up
from firefly_memory.cursors import as_token, from_token
from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.entries.hooks import Backend
from firefly_memory.entries.record import Position, Record, Row, to_entries, to_record
from firefly_memory.errors import DatabaseStoreError, InvalidEntryError
from firefly_memory.facets import LogOf, Purged, all_facets, load, log_if_there
from firefly_memory.identifiers import (
    CONVERSATIONS,
    PAST_CONVERSATIONS,
    RESERVED,
    original_name,
    stored_name,
    stored_namespace,
    stored_text,
)
from firefly_memory.protocols import Absence, Capability, Page, Readable, Sameness
from firefly_memory.validation import checked_text, checked_whole_number

logger = logging.getLogger("firefly_memory")

L = TypeVar("L")

CLEANUP_BATCH = 10_000
"""Entries that one statement of ``cleanup_expired`` deletes: short locks, and still few round trips."""

_NO_MORE = 2**31 - 2
"""What a limit above it comes down to, so that with one more it is still a number that all drivers and servers take."""


class RecordView:
    """A :class:`~firefly_memory.protocols.StoreView`: checks at the door, encodes, pages, decodes."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._backend.capabilities

    def log(self, of: LogOf[L]) -> L:
        return self._backend.log(of)

    async def initialize(self, *, migrate: bool | None = None) -> None:
        await self._backend.initialize(migrate)

    async def close(self) -> None:
        await self._backend.close()

    async def save(self, namespace: str, entry: MemoryEntry) -> None:
        record = to_record(self._backend.form, stored_namespace(namespace), entry)
        await self._backend.save(record, clock.now())

    async def save_if(self, namespace: str, entry: MemoryEntry, expected: Any) -> bool:
        form = self._backend.form
        record = to_record(form, stored_namespace(namespace), entry)
        encoded = expected if isinstance(expected, (Absence, Sameness)) else form.encode(expected, "expected")
        return await self._backend.save_if(record, encoded, clock.now())

    async def save_many(self, namespace: str, entries: Iterable[MemoryEntry]) -> None:
        namespace = stored_namespace(namespace)
        if isinstance(entries, (MemoryEntry, str)):
            raise InvalidEntryError("entries", "must be several entries; use save() for one")
        form = self._backend.form
        records: dict[str, Record] = {}
        for entry in entries:
            record = to_record(form, namespace, entry)
            earlier = records.get(record.entry_id)
            if earlier is not None:  # as if saved one after the other: the first made it, the last wins
                record = record._replace(created_at=earlier.created_at)
            records[record.entry_id] = record
        if records:
            await self._backend.save_many(list(records.values()), clock.now())

    async def load(self, namespace: str) -> list[MemoryEntry]:
        rows = await self._backend.scan(stored_namespace(namespace), None, None, clock.now())
        return self._entries("load", rows)

    async def load_readable(self, namespaces: Sequence[str]) -> dict[str, Readable]:
        stored = {stored_namespace(namespace): namespace for namespace in namespaces}
        found = {namespace: Readable([], set()) for namespace in namespaces}
        for row in await self._backend.scan_several(list(stored), clock.now()):
            entries, damaged = found[stored[row[1]]]
            try:
                entries += self._entries("load", (row,))
            except DatabaseStoreError as exc:
                damaged.add(original_name(row[3] or ""))
                logger.warning("an entry was left out: %s", exc)
        return found

    async def load_page(self, namespace: str, limit: int = 100, after: str | None = None) -> Page:
        namespace = stored_namespace(namespace)
        position = None if after is None else Position(*from_token(after, "load_page()"))
        limit = _checked_limit(limit)
        if limit == 0:
            return Page((), after)
        rows = await self._backend.scan(namespace, limit + 1, position, clock.now())
        entries = self._entries("load_page", rows[:limit])
        return Page(
            tuple(entries), as_token(entries[-1].created_at, entries[-1].entry_id) if len(rows) > limit else None
        )

    async def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        row = await self._backend.newest(stored_namespace(namespace), stored_name("key", key), clock.now())
        return None if row is None else self._entries("load_by_key", (row,))[0]

    async def delete(self, namespace: str, entry_id: str) -> None:
        await self._backend.delete(stored_namespace(namespace), stored_name("entry_id", entry_id), clock.now())

    async def delete_many(self, namespace: str, entry_ids: Iterable[str]) -> int:
        namespace = stored_namespace(namespace)
        if isinstance(entry_ids, str):
            raise InvalidEntryError("entry_ids", "must be several ids, not one text; use delete() for one")
        stored = dict.fromkeys(stored_name("entry_id", entry_id) for entry_id in entry_ids)
        return await self._backend.delete_many(namespace, list(stored), clock.now()) if stored else 0

    async def clear(self, namespace: str) -> None:
        await self._backend.clear(stored_namespace(namespace))

    async def count(self, namespace: str) -> int:
        return await self._backend.count(stored_namespace(namespace), clock.now())

    async def namespaces(self, prefix: str = "", limit: int = 100, after: str | None = None) -> list[str]:
        limit = _checked_limit(limit)
        if limit == 0:
            return []
        for what, value in (("prefix", prefix), ("after", after)):
            if value is not None:
                checked_text(what, value)
        prefix, start = stored_text(prefix or ""), "" if after is None else stored_text(after)
        if prefix.startswith(CONVERSATIONS):
            raise InvalidEntryError("prefix", RESERVED)
        found: list[str] = []
        while len(found) < limit:
            wanted = limit - len(found)
            page = await self._backend.namespaces(prefix, wanted, start, clock.now())
            found += [original_name(namespace) for namespace in page if not namespace.startswith(CONVERSATIONS)]
            if len(page) < wanted:
                break
            start = max(page[-1], PAST_CONVERSATIONS) if page[-1].startswith(CONVERSATIONS) else page[-1]
        return found

    async def cleanup_expired(self) -> int:
        now = clock.now()
        total = await _purged(partial(self._backend.purge, CLEANUP_BATCH, now))
        for facet in all_facets():
            purge = load(facet.operations, "expiry")
            log = None if purge is None else log_if_there(self, LogOf(facet.name))
            if log is not None:
                total += await _purged(partial(purge, log, CLEANUP_BATCH, now))
        return total

    def _entries(self, operation: str, rows: Iterable[Row]) -> list[MemoryEntry]:
        return to_entries(self._backend.form, self._backend.read_instant, rows, operation)


async def _purged(batch: Callable[[], Awaitable[Purged]]) -> int:
    total, more = 0, True
    while more:
        stop_if_given_up()
        deleted, more = await batch()
        total += deleted
    return total


def _checked_limit(limit: int) -> int:
    return min(checked_whole_number("limit", limit), _NO_MORE)
