"""The walk over the facets that erases a person, in either mode. :mod:`firefly_memory.erasure` is its public face.

It is below the facets, so that a facet may offer it for people of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from firefly_memory import clock
from firefly_memory.entries.scopes import NAMESPACE, checked_scope
from firefly_memory.errors import DatabaseStoreError, InvalidEntryError
from firefly_memory.identifiers import original_name, stored_name, stored_namespace, stored_text
from firefly_memory.people import Aliases, Eraser, parts_in
from firefly_memory.protocols import StoreView
from firefly_memory.tombstones.log import TOMBSTONES, namespace_identity, owner_identity

Progress = Callable[[Mapping[str, int]], None]
"""Is called with the rows that were erased so far, by kind."""

_TIMES_IN_VAIN = 3
"""So often in a row it looks for what it then cannot delete."""

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
    further_ids: int = 0
    """How many other ids of the same person were erased as well, such as those of people who were merged."""


async def erase_from(
    view: StoreView,
    owner: str,
    namespaces: Iterable[str] = (),
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Receipt:
    """:func:`firefly_memory.erasure.erase`, in either mode."""
    erasure = _Erasure(view, stored_name("owner", owner), progress)
    await erasure.look_for_ids()
    scopes = erasure.scopes()
    named = [name for name in dict.fromkeys(_texts(namespaces)) if name not in scopes]
    for name in named:
        stored_namespace(name)  # says what is wrong with it before anything is deleted
    await (erasure.count(named) if dry_run else erasure.delete(named))
    note = _OTHER_ENTRIES + (" and those named" if named else "")
    return Receipt(dict(erasure.rows), len(named), dry_run, note, len(erasure.ids) - 1)


async def ids_of_person(view: StoreView, owner: str) -> list[str]:
    """The id of a person, and all further ids that the facets know, in their stored form."""
    ids = [owner]
    while further := await _further(view, ids):
        ids += further
    return ids


class _Erasure:
    """Of one person from one store."""

    def __init__(self, view: StoreView, owner: str, progress: Progress | None) -> None:
        self.rows = Counter[str]()
        self.ids = [owner]
        """All ids of the person that are known, in their stored form."""
        self._view = view
        self._progress = progress
        self._tombstones = view.log(TOMBSTONES)

    async def look_for_ids(self) -> None:
        self.ids = await ids_of_person(self._view, self.ids[0])

    def scopes(self) -> list[str]:
        """The namespaces of the facts in the scopes of these names."""
        return [scope for each in self.ids for scope in _scope_of_person(original_name(each))]

    async def count(self, named: Iterable[str]) -> None:
        for eraser in _erasers_in(self._view):
            for owner in self.ids:
                async for page in eraser.owned(owner):
                    for each in page:
                        self._add(each.counts)
        for aliases in _aliases_in(self._view):
            for each in await aliases.owned(self.ids):
                self._add(each.counts)
        for namespace in (*self.scopes(), *named):
            await self._count_entries(namespace)

    async def delete(self, named: Iterable[str]) -> None:
        """First the tombstones, so that nothing comes after what is deleted; a second run goes on from there. What
        tells the further ids of the person goes last, so that the second run finds them."""
        await self._refuse()
        await self._delete_all_owned()
        for namespace in (*self.scopes(), *named):
            await self._count_entries(namespace)
            await self._view.clear(namespace)
        for aliases in _aliases_in(self._view):
            owned = await aliases.owned(self.ids)
            self._add(await aliases.delete(owned) if owned else {})
        await self._tombstones.scrub()

    async def _refuse(self) -> None:
        """Refuse all ids. From then on nobody can be merged with this person; somebody may have been meanwhile."""
        new = self.ids
        while new:
            for owner in new:
                scopes = [namespace_identity(stored_text(each)) for each in _scope_of_person(original_name(owner))]
                await self._tombstones.add([owner_identity(owner), *scopes], owner, clock.now())
            new = await _further(self._view, self.ids)
            self.ids = [*self.ids, *new]

    async def _delete_all_owned(self) -> None:
        """Until nothing is found, for a write was perhaps under way. What its writer has just taken back cannot be
        deleted, and is not found again."""
        in_vain = 0
        while True:
            before = self.rows.total()
            if not await self._delete_owned():
                return
            in_vain = in_vain + 1 if self.rows.total() == before else 0
            if in_vain == _TIMES_IN_VAIN:
                said = "some of what belongs to this person cannot be deleted"
                raise DatabaseStoreError("erase", said, retryable=True)

    async def _delete_owned(self) -> bool:
        """Whether there was anything."""
        found = False
        for eraser in _erasers_in(self._view):
            self._add(await eraser.delete(()))
            for owner in self.ids:
                async for page in eraser.owned(owner):
                    identities = [identity for each in page for identity in each.identities]
                    await self._tombstones.add(identities, owner, clock.now())
                    self._add(await eraser.delete(page))
                    found = found or bool(page)
        return found

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


def _aliases_in(view: StoreView) -> Iterator[Aliases]:
    return parts_in(view, "aliases")


async def _further(view: StoreView, ids: Sequence[str]) -> list[str]:
    """Ids of the same person that are not among ``ids``."""
    known, found = {*ids}, dict[str, None]()
    for aliases in _aliases_in(view):
        found |= dict.fromkeys(await aliases.same(ids))
    return [each for each in found if each not in known]


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
