"""What every store has in common: each operation in both modes, over its two views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn
from warnings import warn

from firefly_memory.concurrency.async_pairs import Openable
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.entries.entry import MemoryEntry
from firefly_memory.protocols import Capability, Page, Readable, StoreView


class EntryStore(Openable):
    """A store. :class:`~firefly_memory.protocols.StoreView` says what each operation does, the module around it
    which rules all of them keep."""

    def __init__(self, blocking: StoreView, suspending: StoreView) -> None:
        self._blocking = blocking
        self._suspending = suspending

    @property
    def blocking(self) -> StoreView:
        """The operations as coroutines that never suspend."""
        return self._blocking

    @property
    def suspending(self) -> StoreView:
        """The operations as coroutines for an event loop."""
        return self._suspending

    in_transaction: bool = False
    """Whether this is a store in somebody's transaction, as ``bind()`` returns."""

    path: Path | None = None
    """The file or directory that everything is in, if the store has one."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The promises this store makes beyond those that every store makes."""
        return self.blocking.capabilities

    def save(self, namespace: str, entry: MemoryEntry) -> None:
        """Save ``entry``, replacing the one with its ``entry_id``."""
        run_without_loop(self.blocking.save(namespace, entry))

    async def async_save(self, namespace: str, entry: MemoryEntry) -> None:
        """Save ``entry``, replacing the one with its ``entry_id``."""
        await self.suspending.save(namespace, entry)

    def save_if(self, namespace: str, entry: MemoryEntry, expected: Any) -> bool:
        """Save ``entry`` if the live entry with its ``entry_id`` has the content ``expected``; return whether it had.

        ``expected=ABSENT`` stands for no such entry, and ``SAME_METADATA`` for one with the metadata of ``entry``.
        Values are the same if they are stored the same, down to the order of keys; whether ``1`` and ``1.0`` are is up
        to the backend.
        """
        return run_without_loop(self.blocking.save_if(namespace, entry, expected))

    async def async_save_if(self, namespace: str, entry: MemoryEntry, expected: Any) -> bool:
        """Save ``entry`` if the live entry with its ``entry_id`` has the content ``expected``; return whether it had.

        ``expected=ABSENT`` stands for no such entry, and ``SAME_METADATA`` for one with the metadata of ``entry``.
        Values are the same if they are stored the same, down to the order of keys; whether ``1`` and ``1.0`` are is up
        to the backend.
        """
        return await self.suspending.save_if(namespace, entry, expected)

    def save_many(self, namespace: str, entries: Iterable[MemoryEntry]) -> None:
        """Save all ``entries`` or none. Of two with the same ``entry_id``, the later one wins."""
        run_without_loop(self.blocking.save_many(namespace, entries))

    async def async_save_many(self, namespace: str, entries: Iterable[MemoryEntry]) -> None:
        """Save all ``entries`` or none. Of two with the same ``entry_id``, the later one wins."""
        await self.suspending.save_many(namespace, entries)

    def load(self, namespace: str) -> list[MemoryEntry]:
        """All live entries of ``namespace``, oldest first. An unknown namespace is empty."""
        return run_without_loop(self.blocking.load(namespace))

    async def async_load(self, namespace: str) -> list[MemoryEntry]:
        """All live entries of ``namespace``, oldest first. An unknown namespace is empty."""
        return await self.suspending.load(namespace)

    def load_readable(self, namespaces: Sequence[str]) -> dict[str, Readable]:
        """All live entries of several namespaces, each oldest first, but for damaged ones: the log says which.

        It is one query where the store has queries.
        """
        return run_without_loop(self.blocking.load_readable(namespaces))

    async def async_load_readable(self, namespaces: Sequence[str]) -> dict[str, Readable]:
        """All live entries of several namespaces, each oldest first, but for damaged ones: the log says which.

        It is one query where the store has queries.
        """
        return await self.suspending.load_readable(namespaces)

    def load_page(self, namespace: str, limit: int = 100, after: str | None = None) -> Page:
        """Up to ``limit`` live entries, oldest first, from the start or from ``after``, an earlier page's ``next``."""
        return run_without_loop(self.blocking.load_page(namespace, limit, after))

    async def async_load_page(self, namespace: str, limit: int = 100, after: str | None = None) -> Page:
        """Up to ``limit`` live entries, oldest first, from the start or from ``after``, an earlier page's ``next``."""
        return await self.suspending.load_page(namespace, limit, after)

    def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        """The newest live entry with ``key``, or ``None``."""
        return run_without_loop(self.blocking.load_by_key(namespace, key))

    async def async_load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        """The newest live entry with ``key``, or ``None``."""
        return await self.suspending.load_by_key(namespace, key)

    def delete(self, namespace: str, entry_id: str) -> None:
        """Delete one entry. Deleting what is not there changes nothing."""
        run_without_loop(self.blocking.delete(namespace, entry_id))

    async def async_delete(self, namespace: str, entry_id: str) -> None:
        """Delete one entry. Deleting what is not there changes nothing."""
        await self.suspending.delete(namespace, entry_id)

    def delete_many(self, namespace: str, entry_ids: Iterable[str]) -> int:
        """Delete all these entries or none, and return how many of them were there."""
        return run_without_loop(self.blocking.delete_many(namespace, entry_ids))

    async def async_delete_many(self, namespace: str, entry_ids: Iterable[str]) -> int:
        """Delete all these entries or none, and return how many of them were there."""
        return await self.suspending.delete_many(namespace, entry_ids)

    def clear(self, namespace: str) -> None:
        """Delete every entry of ``namespace``."""
        run_without_loop(self.blocking.clear(namespace))

    async def async_clear(self, namespace: str) -> None:
        """Delete every entry of ``namespace``."""
        await self.suspending.clear(namespace)

    def count(self, namespace: str) -> int:
        """How many live entries ``namespace`` has."""
        return run_without_loop(self.blocking.count(namespace))

    async def async_count(self, namespace: str) -> int:
        """How many live entries ``namespace`` has."""
        return await self.suspending.count(namespace)

    def namespaces(self, prefix: str = "", limit: int = 100, after: str | None = None) -> list[str]:
        """Up to ``limit`` namespaces with live entries that start with ``prefix``, in order, those after ``after``."""
        return run_without_loop(self.blocking.namespaces(prefix, limit, after))

    async def async_namespaces(self, prefix: str = "", limit: int = 100, after: str | None = None) -> list[str]:
        """Up to ``limit`` namespaces with live entries that start with ``prefix``, in order, those after ``after``."""
        return await self.suspending.namespaces(prefix, limit, after)

    def cleanup_expired_sync(self) -> int:
        """Delete expired entries of all namespaces, in batches, and return how many they were."""
        return run_without_loop(self.blocking.cleanup_expired())

    async def cleanup_expired(self) -> int:
        """Delete expired entries of all namespaces, in batches, and return how many they were."""
        return await self.suspending.cleanup_expired()

    async def async_cleanup_expired(self) -> int:
        """Delete expired entries of all namespaces, in batches, and return how many they were."""
        return await self.cleanup_expired()

    def initialize_sync(self, *, migrate: bool | None = None) -> None:
        """Connect, and bring the schema up to date. Idempotent, and done on first use when skipped.

        With ``migrate=False`` the schema is only checked: ``SchemaMismatchError`` names the command to run.
        ``None`` means what the store was opened with (``True`` unless said otherwise).
        """
        run_without_loop(self.blocking.initialize(migrate=migrate))

    async def initialize(self, *, migrate: bool | None = None) -> None:
        """Connect, and bring the schema up to date. Idempotent, and done on first use when skipped.

        With ``migrate=False`` the schema is only checked: ``SchemaMismatchError`` names the command to run.
        ``None`` means what the store was opened with (``True`` unless said otherwise).
        """
        await self.suspending.initialize(migrate=migrate)

    async def async_initialize(self, *, migrate: bool | None = None) -> None:
        """Connect, and bring the schema up to date. Idempotent, and done on first use when skipped.

        With ``migrate=False`` the schema is only checked: ``SchemaMismatchError`` names the command to run.
        ``None`` means what the store was opened with (``True`` unless said otherwise).
        """
        await self.initialize(migrate=migrate)

    def close_sync(self) -> None:
        """Give back what the store opened. Every later call raises ``StoreClosedError``; closing twice is fine."""
        run_without_loop(self.blocking.close())

    async def close(self) -> None:
        """Give back what the store opened. Every later call raises ``StoreClosedError``; closing twice is fine."""
        await self.suspending.close()

    async def async_close(self) -> None:
        """Give back what the store opened. Every later call raises ``StoreClosedError``; closing twice is fine."""
        await self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be copied or pickled: open a store of its own in each process")

    # The names of the library's first documents.

    async def save_async(self, namespace: str, entry: MemoryEntry) -> None:
        """Deprecated: :meth:`async_save`."""
        _renamed("save_async", "async_save")
        await self.async_save(namespace, entry)

    async def load_async(self, namespace: str) -> list[MemoryEntry]:
        """Deprecated: :meth:`async_load`."""
        _renamed("load_async", "async_load")
        return await self.async_load(namespace)

    async def delete_async(self, namespace: str, entry_id: str) -> None:
        """Deprecated: :meth:`async_delete`."""
        _renamed("delete_async", "async_delete")
        await self.async_delete(namespace, entry_id)

    async def clear_async(self, namespace: str) -> None:
        """Deprecated: :meth:`async_clear`."""
        _renamed("clear_async", "async_clear")
        await self.async_clear(namespace)


def _renamed(old: str, new: str) -> None:
    warn(f"{old}() is now called {new}()", DeprecationWarning, stacklevel=3)
