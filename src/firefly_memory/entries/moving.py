"""Entries on their way from one store to another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from firefly_memory.codec import DOCUMENT
from firefly_memory.entries.entry import MemoryEntry, MemoryScope
from firefly_memory.entries.fact_ids import id_of_today
from firefly_memory.entries.scopes import BY_A_MODEL, CLAIMS, NAMESPACE
from firefly_memory.identifiers import namespace_out_of_the_way, stored_name, stored_text
from firefly_memory.moving import Item, Kind, Placed, Walk, Writing
from firefly_memory.protocols import Capability, StoreView

_PAGE = 500


async def entries_of(walk: Walk, _: None) -> Placed:
    """All live entries; none of a store that cannot list its namespaces."""
    if Capability.LISTING not in walk.view.capabilities:
        return
    async for namespace in _namespaces(walk.view):
        after: str | None = None
        while True:
            page = await walk.view.load_page(namespace, _PAGE, after)
            for entry in page:
                key = (stored_text(namespace), entry.created_at, stored_text(entry.entry_id))
                yield key, {"namespace": namespace, **_as_json(entry)}
            after = page.next
            if after is None:
                break


async def _namespaces(view: StoreView) -> AsyncIterator[str]:
    after: str | None = None
    while page := await view.namespaces(limit=_PAGE, after=after):
        for namespace in page:
            if namespace != CLAIMS:
                yield namespace
        after = page[-1]


def _describe(item: Item) -> str:
    return f"entry {item['entry_id']!r} of namespace {item['namespace']!r}"


def _from_archive(item: Item, untrusted: bool) -> tuple[Item, int]:
    """Facts of an untrusted archive count as written by a model."""
    if untrusted and str.startswith(item["namespace"], NAMESPACE):
        item = {**item, "metadata": dict(BY_A_MODEL)}
    return item, 0


ENTRY = Kind(
    name="entry",
    version=1,
    since=None,
    plural="entries",
    noun="entries",
    read=entries_of,
    selected_by="namespace",
    describe=_describe,
    from_archive=_from_archive,
)

KINDS = (ENTRY,)


class EntryWriter:
    """Writes entries in batches. An entry replaces the one with its id; in a merge, it comes last in the order."""

    def __init__(self, view: StoreView, writing: Writing) -> None:
        self._view = view
        self._replace = writing.replace
        self._namespace = ""
        self._batch: list[MemoryEntry] = []

    async def take(self, _: str, item: Item, *, there: bool = False) -> None:
        """The entry gets the names that revision 0004 gives: an archive of before may have others."""
        if there:
            return
        fields = dict(item)
        given = fields.pop("namespace")
        entry = _from_json(fields)
        _check_names(given, entry)
        entry.entry_id = id_of_today(given, entry.key, entry.entry_id)
        namespace = namespace_out_of_the_way(given)
        if namespace != self._namespace or len(self._batch) == _PAGE:
            await self.flush()
        self._namespace = namespace
        self._batch.append(entry)

    async def flush(self) -> None:
        if not self._batch:
            return
        if self._replace:  # an entry that is saved again would keep its place
            await self._view.delete_many(self._namespace, [entry.entry_id for entry in self._batch])
        if Capability.ATOMIC_BATCHES in self._view.capabilities:
            await self._view.save_many(self._namespace, self._batch)
        else:
            for entry in self._batch:
                await self._view.save(self._namespace, entry)
        self._batch = []

    async def finish(self) -> None:
        await self.flush()

    async def abandon(self) -> None:
        """Entries of the batch that are written are whole."""


def _check_names(namespace: str, entry: MemoryEntry) -> None:
    """Now, for this entry: later they would be refused with its batch."""
    stored_name("namespace", namespace)
    stored_name("entry_id", entry.entry_id)
    if entry.key is not None:
        stored_name("key", entry.key)


def _as_json(entry: MemoryEntry) -> dict[str, Any]:
    return {
        "entry_id": entry.entry_id,
        "scope": entry.scope.value,
        "key": entry.key,
        "content": DOCUMENT.encode(entry.content),
        "metadata": DOCUMENT.encode(entry.metadata),
        "created_at": entry.created_at.isoformat(),
        "expires_at": None if entry.expires_at is None else entry.expires_at.isoformat(),
        "importance": entry.importance,
    }


def _from_json(item: dict[str, Any]) -> MemoryEntry:
    content, metadata = DOCUMENT.decode(item.pop("content")), DOCUMENT.decode(item.pop("metadata"))
    return MemoryEntry(content=content, metadata=metadata, scope=MemoryScope(item.pop("scope")), **item)
