"""Erase a person: everything of an owner in every facet of a store, and whatever is written of this owner later.

Every function exists twice: ``erase(store, …)`` and ``await async_erase(store, …)``.
"""

from __future__ import annotations

from collections.abc import Iterable

from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.erasing import Progress, Receipt, erase_from
from firefly_memory.errors import InvalidEntryError
from firefly_memory.identifiers import stored_name
from firefly_memory.protocols import MemoryStore, StoreView
from firefly_memory.stores.adapter import adapt
from firefly_memory.tombstones.log import TOMBSTONES
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
    owner. If the store knows further ids of the person, such as those of people who were merged into this one, all of
    this is deleted of each of these ids as well.

    A tombstone without a name stays for each id. By it, a late write raises ``ErasedError``, until :func:`readmit`.

    What was interrupted is simply started again. ``dry_run`` only counts.
    """
    return run_without_loop(erase_from(adapt(store).blocking, owner, namespaces, dry_run=dry_run, progress=progress))


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
    owner. If the store knows further ids of the person, such as those of people who were merged into this one, all of
    this is deleted of each of these ids as well.

    A tombstone without a name stays for each id. By it, a late write raises ``ErasedError``, until :func:`readmit`.

    What was interrupted is simply started again. ``dry_run`` only counts.
    """
    return await erase_from(adapt(store).suspending, owner, namespaces, dry_run=dry_run, progress=progress)


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


async def _readmit(view: StoreView, owner: str) -> bool:
    return await view.log(TOMBSTONES).remove(stored_name("owner", owner)) > 0


async def _find_text(view: StoreView, text: str) -> dict[str, int]:
    if not checked_text("text", text):
        raise InvalidEntryError("text", "must not be empty")
    return {place: rows for place, rows in await view.log(TOMBSTONES).find_text(text) if rows}
