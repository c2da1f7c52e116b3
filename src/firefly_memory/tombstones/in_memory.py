"""The tombstones of the in-memory store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from secrets import token_hex
from typing import Any, Protocol

from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.databases.text_forms import forms_of
from firefly_memory.databases.text_search import rows_with
from firefly_memory.errors import ErasedError, StoreClosedError
from firefly_memory.facets import FacetLogs, LogOf, all_facets, log_if_there
from firefly_memory.tombstones.log import Identity, owner_identity, tombstone


class MemoryTombstones:
    """The tombstones in a dict. Whoever writes holds the lock of the store, looks here, and only then writes."""

    def __init__(self) -> None:
        self._key = token_hex(32)
        self._owner_of: dict[str, str] = {}
        """The tombstone of the person, for each tombstone."""

    def check(self, operation: str, identities: Iterable[Identity]) -> None:
        """``ErasedError`` if one of these is refused."""
        if self.are_there(identities):
            raise ErasedError(operation)

    def are_there(self, identities: Iterable[Identity]) -> bool:
        return bool(self._owner_of) and any(self._of(each) in self._owner_of for each in identities)

    def add(self, identities: Iterable[Identity], owner: str) -> None:
        for each in identities:
            self._owner_of.setdefault(self._of(each), self._of(owner_identity(owner)))

    def remove(self, owner: str) -> int:
        before = self._owner_of
        self._owner_of = {each: of for each, of in before.items() if of != self._of(owner_identity(owner))}
        return len(before) - len(self._owner_of)

    def clear(self) -> None:
        self._owner_of.clear()

    def _of(self, identity: Identity) -> str:
        return tombstone(self._key, identity)


class Memory(Protocol):
    """The in-memory store, as far as tombstones need it."""

    lock: ForkSafeLock
    tombstones: MemoryTombstones
    log: FacetLogs

    def records(self) -> Iterable[tuple[Any, ...]]:
        """Every entry, live or not. The caller holds the lock."""


class MemoryTombstoneLog:
    """A :class:`~firefly_memory.tombstones.log.TombstoneLog`. All facets write under one lock, so that a write is
    before a tombstone, and can be found, or after it, and is refused."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._closed = False

    def close(self) -> None:
        with self._memory.lock:
            self._closed = True
            self._memory.tombstones.clear()

    async def add(self, identities: Sequence[Identity], owner: str, now: datetime) -> None:
        with self._memory.lock:
            self._opened("erase").add(identities, owner)

    async def are_there(self, identities: Sequence[Identity]) -> bool:
        with self._memory.lock:
            return self._opened("erase").are_there(identities)

    async def remove(self, owner: str) -> int:
        with self._memory.lock:
            return self._opened("readmit").remove(owner)

    async def find_text(self, text: str) -> Sequence[tuple[str, int]]:
        memory, forms = self._memory, forms_of(text)
        asked: list[LogOf[Any]] = [LogOf(facet.name) for facet in all_facets()]
        logs = {each.facet: log_if_there(memory, each) for each in asked}
        with memory.lock:
            self._opened("find_text")
            found = {"entries": rows_with(forms, memory.records(), {id(memory)})}
            for name, log in logs.items():
                if log is not None:
                    found[name] = rows_with(forms, vars(log), {id(memory)})
        return list(found.items())

    async def scrub(self) -> None:
        """Nothing is left of what was deleted from a dict."""

    def _opened(self, operation: str) -> MemoryTombstones:
        if self._closed:
            raise StoreClosedError(operation)
        return self._memory.tombstones
