"""What erasing a person, and pruning what is old, need of a facet.

:mod:`firefly_memory.erasing` and :mod:`firefly_memory.retention` name no facet. They walk the registry.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from firefly_memory.errors import NotSupportedError
from firefly_memory.facets import all_facets, load
from firefly_memory.protocols import StoreView
from firefly_memory.tombstones.log import Identity

Counts = Mapping[str, int]
"""Numbers of rows by kind, as ``firefly-memory ls`` names the kinds."""


class Owned(NamedTuple):
    """Something of a person that is deleted as a whole, such as a conversation with its turns and facts."""

    name: str
    """Its id in the stored form."""
    identities: tuple[Identity, ...]
    """What is refused once it is erased."""
    counts: Counts
    """The rows that it consists of."""


def parts_in(view: StoreView, entry: str) -> Iterator[Any]:
    """What the facets that a store keeps have declared as this entry of ``People``, made for the store."""
    for facet in all_facets():
        make = load(facet.people, entry)
        if make is None:
            continue
        try:
            yield make(view)
        except NotSupportedError:
            continue


class Eraser(Protocol):
    """One facet of one store, as erasing a person needs it."""

    def owned(self, owner: str) -> AsyncIterator[Sequence[Owned]]:
        """Everything that belongs to a person, in pages. What a page has may be deleted before the next is read."""

    async def delete(self, owned: Sequence[Owned]) -> Counts:
        """Delete these, whose identities are refused by now; how many rows were deleted. Without any, only end what an
        interrupted deletion has left."""


class Aliases(Protocol):
    """What one facet of one store knows of the ids of people, and the rows that it knows them from.

    These rows are erased last, after everything else of all ids of the person in every facet: so an erasure that was
    interrupted finds the ids again.
    """

    async def same(self, owners: Collection[str]) -> Collection[str]:
        """Further ids of the people who have these ids. It is called again with what it has found, until it finds
        nothing new. Everything is in the stored form."""

    async def owned(self, owners: Collection[str]) -> Sequence[Owned]:
        """The rows of these people: all that :meth:`same` looks at."""

    async def delete(self, owned: Sequence[Owned]) -> Counts:
        """Delete these, all of them or none; how many rows were deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What retention leaves: each bound that is not ``None`` holds for itself, and counts for each owner apart."""

    before: datetime | None = None
    """What has been written to since then stays, as far as this bound goes."""
    keep_last: int | None = None
    """How many stay, those with the newest activity."""
    max_tokens: int | None = None
    """How many tokens stay, those of the newest activity. A facet without tokens ignores it."""
    owner: str | None = None
    """Only of this person; of all, and of nobody's, if ``None``."""


class Doomed(NamedTuple):
    """Something that is out of bounds."""

    name: str
    state: object
    """What tells whether it was written to since: then it stays."""
    counts: Counts


class Pruner(Protocol):
    """One facet of one store, as retention needs it."""

    def doomed(self, bounds: Bounds) -> AsyncIterator[Sequence[Doomed]]:
        """Everything that is out of bounds, in pages. What a page has may be deleted before the next is read."""

    async def delete(self, doomed: Sequence[Doomed]) -> Counts:
        """Delete those of these that nobody has written to since; how many rows were deleted."""
