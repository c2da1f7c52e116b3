"""Stores with nothing in them, some of which are on servers that other tests use as well."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from firefly_memory import ConversationMemory, EntryStore, MongoDBStore, PostgreSQLStore, service

_emptied: set[tuple[str, type[EntryStore]]] = set()


@asynccontextmanager
async def opened_empty(store: EntryStore, name: str) -> AsyncIterator[EntryStore]:
    """``store``, open and empty. Each ``name`` has a schema or database of its own, which its tests leave empty; only an
    earlier run may have left something on a server that lasts."""
    async with store:
        lasts = isinstance(store, PostgreSQLStore | MongoDBStore)
        if lasts and (name, type(store)) not in _emptied:
            await empty(store)
        _emptied.add((name, type(store)))
        try:
            yield store
        finally:
            if lasts:
                await empty(store)


async def empty(store: EntryStore) -> None:
    await ConversationMemory(store=store).async_clear_all()
    while namespaces := await store.async_namespaces():
        for namespace in namespaces:
            await store.async_clear(namespace)


def delete_everything(store: EntryStore) -> None:
    """Delete the rows of every kind, whichever facet they are of, and all namespaces."""
    store.initialize_sync()
    for each in service.resources(store):
        if each.why_kept is None and not each.needs:  # others go with the rows that they belong to
            service.delete(store, each.kind, where={})
    for namespace in store.namespaces(limit=10_000):
        store.clear(namespace)
