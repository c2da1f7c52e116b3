"""A backend of a user's own, which has only the five methods, as a full store."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from inspect import iscoroutinefunction
from typing import Any, NoReturn, TypeVar

from firefly_memory.codec import PORTABLE, damaged
from firefly_memory.concurrency.cancellation import stop_if_given_up
from firefly_memory.entries.entry import MemoryEntry, restored_entry
from firefly_memory.entries.namespace_lock import alone_at_once, alone_in_turn
from firefly_memory.entries.ordered_records import OrderedRecords, is_live
from firefly_memory.entries.record import Position, Record, as_it_is
from firefly_memory.entries.scopes import identities_of_namespace
from firefly_memory.entries.store_operations import RecordView
from firefly_memory.entries.threaded_view import threaded
from firefly_memory.errors import (
    ConfigurationError,
    CorruptDataError,
    DatabaseStoreError,
    ErasedError,
    NotSupportedError,
    StoreClosedError,
)
from firefly_memory.facets import FacetLogs, Purged
from firefly_memory.identifiers import CONVERSATIONS
from firefly_memory.protocols import AsyncMemoryStore, Capability, MemoryStore, StoreView
from firefly_memory.reprs import even_half_built
from firefly_memory.stores.base import EntryStore
from firefly_memory.tombstones.guard import UNGUARDED, Guard
from firefly_memory.tombstones.log import TOMBSTONES

T = TypeVar("T")

_OF_CONVERSATIONS = re.compile(f"(adapted-)*{CONVERSATIONS}")

_FIVE = ("save", "load", "load_by_key", "delete", "clear")


def adapt(store: MemoryStore, capabilities: Collection[Capability] = ()) -> EntryStore:
    """``store`` with every operation in both modes.

    Ours are returned as they are. A backend with the five methods of ``MemoryStore`` gets the rest: values are made
    safe for it, expired entries are hidden, order and pages are made from what it loads. What it cannot know it
    refuses (``Capability.LISTING``). ``capabilities`` are the promises its author makes for it.
    """
    if isinstance(store, type):
        raise ConfigurationError(f"{store.__name__} is a class, not a store; pass an object of it")
    if isinstance(store, EntryStore):
        return store
    missing = [name for name in _FIVE if not callable(getattr(store, name, None))]
    if missing:
        raise ConfigurationError(f"{type(store).__name__} is no store: it has no method {', '.join(missing)}")
    waiting = [name for name in _FIVE if iscoroutinefunction(getattr(store, name))]
    if waiting:
        raise ConfigurationError(
            f"{type(store).__name__} has coroutines where a store blocks; call them async_{', async_'.join(waiting)}"
        )
    for capability in capabilities:
        if not isinstance(capability, Capability):
            raise ConfigurationError(f"{capability!r} is not a Capability")
    return CustomStore(store, capabilities)


class CustomStore(EntryStore):
    """What :func:`adapt` makes of a backend with the five methods."""

    def __init__(self, store: MemoryStore, capabilities: Collection[Capability] = ()) -> None:
        self._store = store
        promised = frozenset(capabilities) - {Capability.LISTING}
        blocking = RecordView(_CustomBackend(_Renaming(_Blocking(store)), promised, alone_at_once))
        suspending: StoreView = threaded(blocking)
        if isinstance(store, AsyncMemoryStore):
            suspending = RecordView(_CustomBackend(_Renaming(store), promised, alone_in_turn))
        super().__init__(blocking, suspending)

    @even_half_built
    def __repr__(self) -> str:
        return f"CustomStore({self._store!r})"


_Alone = Callable[[str], AbstractAsyncContextManager[None]]


class _Blocking:
    """The five methods as coroutines that never suspend."""

    def __init__(self, store: MemoryStore) -> None:
        self._given = store

    @property
    def _store(self) -> MemoryStore:
        stop_if_given_up()
        return self._given

    async def async_save(self, namespace: str, entry: MemoryEntry) -> None:
        self._store.save(namespace, entry)

    async def async_load(self, namespace: str) -> list[MemoryEntry]:
        return self._store.load(namespace)

    async def async_load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        return self._store.load_by_key(namespace, key)

    async def async_delete(self, namespace: str, entry_id: str) -> None:
        self._store.delete(namespace, entry_id)

    async def async_clear(self, namespace: str) -> None:
        self._store.clear(namespace)


class _Renaming:
    """The five methods with other names for the namespaces of conversations: a backend that passes them on to a store
    of ours could not save there under the names that our stores refuse. No two namespaces get the same name."""

    def __init__(self, store: AsyncMemoryStore) -> None:
        self._store = store

    async def async_save(self, namespace: str, entry: MemoryEntry) -> None:
        await self._store.async_save(_outside(namespace), entry)

    async def async_load(self, namespace: str) -> list[MemoryEntry]:
        return await self._store.async_load(_outside(namespace))

    async def async_load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        return await self._store.async_load_by_key(_outside(namespace), key)

    async def async_delete(self, namespace: str, entry_id: str) -> None:
        await self._store.async_delete(_outside(namespace), entry_id)

    async def async_clear(self, namespace: str) -> None:
        await self._store.async_clear(_outside(namespace))


def _outside(namespace: str) -> str:
    return f"adapted-{namespace}" if _OF_CONVERSATIONS.match(namespace) else namespace


class _CustomBackend:
    form = PORTABLE
    read_instant = staticmethod(as_it_is)

    def __init__(self, store: AsyncMemoryStore, capabilities: frozenset[Capability], alone: _Alone) -> None:
        self._store = store
        self.capabilities = capabilities
        self._alone = alone
        self._closed = False
        self.log = FacetLogs("over_entries", lambda log: log(self))

    async def initialize(self, migrate: bool | None) -> None:
        self._check_open("initialize")

    async def close(self) -> None:
        self._closed = True  # the backend itself is its owner's to close

    async def save(self, record: Record, now: datetime) -> None:
        self._check_open("save")
        async with self._alone(record.namespace):  # nor between the reading and the writing of an edit
            await self._check(Guard("save", identities_of_namespace(record.namespace)), 0)
            await self._store.async_save(record.namespace, _entry(record))

    async def save_if(self, record: Record, expected: Any, now: datetime) -> bool:
        guard = Guard("save_if", identities_of_namespace(record.namespace))
        return await self.edit(record.namespace, lambda ordered: ordered.put_if(record, expected, now), guard)

    async def save_many(self, records: list[Record], now: datetime) -> None:
        for record in records:
            await self.save(record, now)

    async def edit(self, namespace: str, change: Callable[[OrderedRecords], T], guard: Guard = UNGUARDED) -> T:
        """Let ``change`` work on the records of a namespace while nobody else of this process edits them."""
        self._check_open("edit")
        async with self._alone(namespace):
            ordered = await self._records_of("edit", namespace)
            await self._check(guard, len(ordered))
            before = {record.entry_id: record for record in ordered}
            result = change(ordered)
            for record in ordered:
                if before.pop(record.entry_id, None) is not record:
                    await self._store.async_save(namespace, _entry(record))
            for entry_id in before:
                await self._store.async_delete(namespace, entry_id)
            return result

    async def _check(self, guard: Guard, records: int) -> None:
        """``ErasedError`` if the guard says so. The caller is alone in the namespace, which has so many records."""
        if guard.applies(records) and await self.log(TOMBSTONES).are_there(guard.identities):
            raise ErasedError(guard.operation)

    async def wait_for_writers(self, namespaces: Iterable[str]) -> None:
        """Those of this process."""
        for namespace in namespaces:
            async with self._alone(namespace):
                pass

    async def scan(self, namespace: str, limit: int | None, after: Position | None, now: datetime) -> list[Record]:
        self._check_open("load")
        return (await self._records_of("load", namespace)).scan(limit, after, now)

    async def scan_several(self, namespaces: list[str], now: datetime) -> list[Record]:
        return [record for namespace in namespaces for record in await self.scan(namespace, None, None, now)]

    async def newest(self, namespace: str, key: str, now: datetime) -> Record | None:
        self._check_open("load_by_key")
        entry = await self._store.async_load_by_key(namespace, key)
        record = None if entry is None else _record("load_by_key", namespace, entry)
        return record if record is not None and is_live(record, now) else None

    async def delete(self, namespace: str, entry_id: str, now: datetime) -> None:
        self._check_open("delete")
        await self._store.async_delete(namespace, entry_id)

    async def delete_many(self, namespace: str, entry_ids: list[str], now: datetime) -> int:
        self._check_open("delete_many")
        found = (await self._records_of("delete_many", namespace)).delete(entry_ids, now)
        for record in found:
            await self._store.async_delete(namespace, record.entry_id)
        return len(found)

    async def clear(self, namespace: str) -> None:
        self._check_open("clear")
        await self._store.async_clear(namespace)

    async def namespaces_of_facts(self) -> tuple[str, ...]:
        return ()  # none of the five methods lists namespaces

    async def count(self, namespace: str, now: datetime) -> int:
        self._check_open("count")
        return (await self._records_of("count", namespace)).count(now)

    async def namespaces(self, prefix: str, limit: int, after: str, now: datetime) -> list[str]:
        self._refuse("namespaces")

    async def purge(self, limit: int, now: datetime) -> Purged:
        self._refuse("cleanup_expired")

    async def _records_of(self, operation: str, namespace: str) -> OrderedRecords:
        loaded = await self._store.async_load(namespace)
        if not isinstance(loaded, Iterable):
            what = None if loaded is None else type(loaded).__name__
            raise DatabaseStoreError(operation, f"the backend's load() returned {what}, not a list of entries")
        entries = list(loaded)  # outside the block: the backend's errors are its own
        try:
            return OrderedRecords(_record(operation, namespace, entry) for entry in entries)
        except (AttributeError, TypeError, ValueError) as exc:
            raise damaged(operation, f"namespace {namespace!r}", exc) from exc

    def _check_open(self, operation: str) -> None:
        if self._closed:
            raise StoreClosedError(operation)

    def _refuse(self, operation: str) -> NoReturn:
        self._check_open(operation)
        raise NotSupportedError(f"{operation}() needs to list namespaces, which a store with the five methods cannot")


def _entry(record: Record) -> MemoryEntry:
    """An entry for the backend: names and values in their stored form, which any backend can keep."""
    return restored_entry(
        record.entry_id,
        record.scope,
        record.key,
        record.content,
        record.metadata,
        record.created_at,
        record.expires_at,
        record.importance,
    )


def _record(operation: str, namespace: str, entry: MemoryEntry) -> Record:
    if not isinstance(entry, MemoryEntry):
        raise CorruptDataError(operation, f"namespace {namespace!r}", f"the backend returned {type(entry).__name__}")
    return Record(
        entry.entry_id,
        namespace,
        entry.scope.value,
        entry.key,
        entry.content,
        entry.metadata,
        entry.created_at,
        entry.expires_at,
        entry.importance,
    )
