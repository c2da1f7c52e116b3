"""The asynchronous colour of a store that can only block: each call runs in a worker thread."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, ParamSpec, TypeVar

from firefly_memory.colours import finish
from firefly_memory.entries import MemoryEntry
from firefly_memory.protocols import Capability, Page, StoreView

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(method: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Await a blocking view's ``method`` in a worker thread."""

    def call() -> T:  # makes the coroutine where it runs, so that a cancelled call leaves none behind
        return finish(method(*args, **kwargs))

    return await to_thread(call)


class ThreadedView:
    """A suspending :class:`~firefly_memory.protocols.StoreView` over a blocking one."""

    def __init__(self, view: StoreView) -> None:
        self._view = view

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._view.capabilities

    async def initialize(self, *, migrate: bool | None = None) -> None:
        await in_thread(self._view.initialize, migrate=migrate)

    async def close(self) -> None:
        await in_thread(self._view.close)

    async def save(self, namespace: str, entry: MemoryEntry) -> None:
        await in_thread(self._view.save, namespace, entry)

    async def save_many(self, namespace: str, entries: Iterable[MemoryEntry]) -> None:
        await in_thread(self._view.save_many, namespace, list(entries))

    async def load(self, namespace: str) -> list[MemoryEntry]:
        return await in_thread(self._view.load, namespace)

    async def load_page(self, namespace: str, limit: int = 100, after: str | None = None) -> Page:
        return await in_thread(self._view.load_page, namespace, limit, after)

    async def load_by_key(self, namespace: str, key: str) -> MemoryEntry | None:
        return await in_thread(self._view.load_by_key, namespace, key)

    async def delete(self, namespace: str, entry_id: str) -> None:
        await in_thread(self._view.delete, namespace, entry_id)

    async def delete_many(self, namespace: str, entry_ids: Iterable[str]) -> int:
        return await in_thread(self._view.delete_many, namespace, entry_ids)

    async def clear(self, namespace: str) -> None:
        await in_thread(self._view.clear, namespace)

    async def count(self, namespace: str) -> int:
        return await in_thread(self._view.count, namespace)

    async def namespaces(self, prefix: str = "", limit: int = 100, after: str | None = None) -> list[str]:
        return await in_thread(self._view.namespaces, prefix, limit, after)

    async def cleanup_expired(self) -> int:
        return await in_thread(self._view.cleanup_expired)
