"""Erase a person: everything of an owner in every facet of a store, and whatever is written of this owner later.

Every function exists twice: ``erase(store, …)`` and ``await async_erase(store, …)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from firefly_memory import clock
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.entries.scopes import NAMESPACE, checked_scope
from firefly_memory.errors import DatabaseStoreError, InvalidEntryError
from firefly_memory.identifiers import stored_name, stored_namespace, stored_text
from firefly_memory.people import Eraser, parts_in
from firefly_memory.protocols import MemoryStore, StoreView
from firefly_memory.stores.adapter import adapt
from firefly_memory.tombstones.log import TOMBSTONES, namespace_identity, owner_identity
from firefly_memory.validation import checked_text

__all__ = [
    "Receipt",
    "async_erase",
    "async_find_text",
    "async_readmit",
    "erase",
    "find_text",
    "readmit",
]

Progress = Callable[[Mapping[str, int]], None]
"""Is called with the rows that were erased so far, by kind."""

_OTHER_ENTRIES = "entries have no owner: no namespaces were looked at but those of this person's facts"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an erasure deleted. It does not say whose it was."""

    rows: Mapping[str, int]
    """How many rows of each kind; the kinds are those of :mod:`firefly_memory.service`."""
    namespaces: int
    """How many namespaces of entries were named, and cleared."""
    is_dry_run: bool
    """Whether the rows were only counted."""
    note: str
    """What was not looked at."""


def erase(
    store: MemoryStore,
    owner: str,
    namespaces: Iterable[str] = (),
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Receipt:
    """Delete everything of the person ``owner``, and refuse what is written of this person from now on.

    Deleted are the conversations of the owner with their turns and facts, agent history whose scope is the owner, what
    other facets have of the owner, the facts in the scope ``owner``, and the entries in ``namespaces``: entries have no
    owner. A tombstone without a name stays. By it, a late write raises ``ErasedError``, until :func:`readmit`.

    What was interrupted is simply started again. ``dry_run`` only counts.
    """
    return run_without_loop(_erase(adapt(store).blocking, owner, namespaces, dry_run, progress))


async def async_erase(
    store: MemoryStore,
    owner: str,
    namespaces: Iterable[str] = (),
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Receipt:
    """Delete everything of the person ``owner``, and refuse what is written of this person from now on.

    Deleted are the conversations of the owner with their turns and facts, agent history whose scope is the owner, what
    other facets have of the owner, the facts in the scope ``owner``, and the entries in ``namespaces``: entries have no
    owner. A tombstone without a name stays. By it, a late write raises ``ErasedError``, until :func:`readmit`.

    What was interrupted is simply started again. ``dry_run`` only counts.
    """
    return await _erase(adapt(store).suspending, owner, namespaces, dry_run, progress)


def readmit(store: MemoryStore, owner: str) -> bool:
    """Accept new data of a person who was erased; whether the person was. Nothing that was erased comes back."""
    return run_without_loop(_readmit(adapt(store).blocking, owner))


async def async_readmit(store: MemoryStore, owner: str) -> bool:
    """Accept new data of a person who was erased; whether the person was. Nothing that was erased comes back."""
    return await _readmit(adapt(store).suspending, owner)


def find_text(store: MemoryStore, text: str) -> dict[str, int]:
    """Every table, collection or file of the store that has the text, and in how many rows or documents: the proof
    that it was erased, if there is none. It reads everything."""
    return run_without_loop(_find_text(adapt(store).blocking, text))


async def async_find_text(store: MemoryStore, text: str) -> dict[str, int]:
    """Every table, collection or file of the store that has the text, and in how many rows or documents: the proof
    that it was erased, if there is none. It reads everything."""
    return await _find_text(adapt(store).suspending, text)


async def _erase(
    view: StoreView, owner: str, namespaces: Iterable[str], dry_run: bool, progress: Progress | None
) -> Receipt:
    erasure = _Erasure(view, stored_name("owner", owner), progress)
    scope = _scope_of_person(owner)
    named = [name for name in dict.fromkeys(_texts(namespaces)) if name not in scope]
    for name in named:
        stored_namespace(name)  # says what is wrong with it before anything is deleted
    if dry_run:
        await erasure.count([*scope, *named])
    else:
        await erasure.delete(scope, named)
    return Receipt(dict(erasure.rows), len(named), dry_run, _OTHER_ENTRIES + (" and those named" if named else ""))


class _Erasure:
    """Of one person from one store."""

    def __init__(self, view: StoreView, owner: str, progress: Progress | None) -> None:
        self.rows = Counter[str]()
        self._view = view
        self._owner = owner
        self._progress = progress
        self._tombstones = view.log(TOMBSTONES)

    async def count(self, namespaces: Iterable[str]) -> None:
        for eraser in _erasers_in(self._view):
            async for page in eraser.owned(self._owner):
                for each in page:
                    self._add(each.counts)
        for namespace in namespaces:
            await self._count_entries(namespace)

    async def delete(self, scope: Iterable[str], named: Iterable[str]) -> None:
        """First the tombstone, so that nothing comes after what is deleted; a second run goes on from there."""
        identities = [namespace_identity(stored_text(each)) for each in scope]
        await self._tombstones.add([owner_identity(self._owner), *identities], self._owner, clock.now())
        while await self._delete_owned():  # until nothing is found, for a write was perhaps under way
            pass
        for namespace in (*scope, *named):
            await self._count_entries(namespace)
            await self._view.clear(namespace)
        await self._tombstones.scrub()

    async def _delete_owned(self) -> bool:
        """Whether there was anything."""
        found, before = 0, self.rows.total()
        for eraser in _erasers_in(self._view):
            self._add(await eraser.delete(()))
            async for page in eraser.owned(self._owner):
                identities = [identity for each in page for identity in each.identities]
                await self._tombstones.add(identities, self._owner, clock.now())
                self._add(await eraser.delete(page))
                found += len(page)
        if found and self.rows.total() == before:
            raise DatabaseStoreError("erase", "some of what belongs to this person cannot be deleted", retryable=True)
        return found > 0

    async def _count_entries(self, namespace: str) -> None:
        kind = "working-facts" if namespace.startswith(NAMESPACE) else "entries"
        self._add({kind: await self._view.count(namespace)})

    def _add(self, counts: Mapping[str, int]) -> None:
        self.rows.update({kind: rows for kind, rows in counts.items() if rows})
        if self._progress is not None:
            self._progress(self.rows)


def _erasers_in(view: StoreView) -> Iterator[Eraser]:
    """Those of the facets that the store keeps."""
    return parts_in(view, "erase")


def _scope_of_person(owner: str) -> list[str]:
    """The namespace of the facts in the scope of this name; none if no scope can have it."""
    try:
        return [f"{NAMESPACE}{checked_scope(owner)}"]
    except InvalidEntryError:
        return []


def _texts(names: Iterable[str]) -> Iterable[str]:
    if isinstance(names, str):
        raise InvalidEntryError("namespaces", "must be several names, not one text")
    return names


async def _readmit(view: StoreView, owner: str) -> bool:
    return await view.log(TOMBSTONES).remove(stored_name("owner", owner)) > 0


async def _find_text(view: StoreView, text: str) -> dict[str, int]:
    if not checked_text("text", text):
        raise InvalidEntryError("text", "must not be empty")
    return {place: rows for place, rows in await view.log(TOMBSTONES).find_text(text) if rows}
