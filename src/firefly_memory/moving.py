"""What archives and copies need of a facet: its kinds of items, and a writer for them.

Archives and copies name no facet. They walk the registry (:mod:`firefly_memory.facets`) in its order, read the items of
each :class:`Kind` from one store, and give them to the :class:`FacetWriter` of the facet in another one. The order of
the registry is the order of the lines in an archive.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from firefly_memory.protocols import StoreView

Item = dict[str, Any]
"""An item as a line of an archive has it. If it has ``expires_at``, it no longer exists after that instant."""

Placed = AsyncGenerator[tuple[Any, Item], None]
"""Items, each with its key. The keys grow from one item to the next, or shrink if the kind is ``descending``. An item
has the same key in every store."""


@dataclass(slots=True, eq=False)
class Walk:
    """One pass over all items of a store. It keeps what a facet must remember from one item to the next."""

    view: StoreView
    raw_messages: bool = True
    """Whether turns are read with their messages."""
    source: Walk | None = None
    """In a copy, the walk over the target has the walk over the source here: the two go side by side."""
    remembered: dict[str, Any] = field(default_factory=dict)
    """By the name of a facet: anything that it wants to remember."""


Read = Callable[[Walk, Any], Placed]
"""``read(walk, outer)``: all items of a kind, or those that belong to the item ``outer`` of the kind around it."""


def as_sorted_json(item: Item) -> str:
    """The same text for equal items."""
    return json.dumps(item, sort_keys=True)


def unchanged(item: Item, untrusted: bool) -> tuple[Item, int]:  # noqa: ARG001
    """For a kind of which nothing speaks to a model with the authority of the system."""
    return item, 0


def never(mine: Item, theirs: Item) -> bool:  # noqa: ARG001
    """For a kind whose items are written whole."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """A kind of items.

    Items of one kind may belong to an item of another one, as turns belong to a conversation: then the inner kind is
    listed in ``within`` of the outer one, and comes right after each outer item.
    """

    name: str
    """The key of its lines in an archive."""
    version: int
    """The version of its items. A reader refuses items with a higher one."""
    since: str | None
    """The first release that knows this kind and version, such as ``"firefly-memory 1.2"``. An archive with such items
    says so in its first line. ``None`` for the kinds that every release knows."""
    plural: str
    """The name of its number in ``Counts`` and in ``--json``, and in the last line of an archive."""
    noun: str
    """The word after its number in a sentence."""
    read: Read
    selected_by: str
    """The field that an import with ``only=`` looks at."""
    describe: Callable[[Item], str]
    """An item in the words of an error message."""
    from_archive: Callable[[Item, bool], tuple[Item, int]] = unchanged
    """``from_archive(item, untrusted)``: checks an item of an archive, and takes out of an untrusted one what a model
    would believe to be said by the system, and what would let one person act for another. Also returns how many things
    were left out."""
    canonical: Callable[[Item], str] = as_sorted_json
    """The text that is equal for equal items of any two stores. Comparisons and checksums use it."""
    descending: bool = False
    """Whether the keys shrink from one item to the next."""
    is_part: Callable[[Item, Item], bool] = never
    """``is_part(mine, theirs)``: whether the target's differing item is an unfinished copy of the source's."""
    may_replace: Callable[[StoreView, Item, Item], Awaitable[bool]] | None = None
    """``may_replace(source, mine, theirs)``: whether the source's item may replace the target's differing one, with all
    items that belong to it, because nothing is lost."""
    is_in: Callable[[Walk], Awaitable[bool]] | None = None
    """``is_in(walk)``: whether a store has any, for a kind within another one. Without it, a store that has anything of
    the facet is taken to have some."""
    within: tuple[Kind, ...] = ()
    """The kinds of the items that belong to an item of this kind."""
    plural_in_archives: str | None = None
    """The name of its number in the last line of an archive, where that is an earlier one: archives never change."""

    def inner_kinds(self) -> Iterator[Kind]:
        """Those within it, and those within these."""
        for kind in self.within:
            yield kind
            yield from kind.inner_kinds()


@dataclass(frozen=True, slots=True)
class Writing:
    """Where the items of a writer come from, and what they may replace."""

    source: StoreView | None = None
    """The store that they are copied from; ``None`` if they are from an archive, which is believed less."""
    replace: bool = False
    """Whether a copy is merged into a store that has other items: an item replaces the one with its id."""


class FacetWriter(Protocol):
    """Writes the items of one facet into a store, in bounded memory. Writing the same items again changes nothing."""

    async def take(self, kind: str, item: Item, *, there: bool = False) -> None:
        """Write an item, now or together with the next ones. ``there`` says that the store has an equal one already."""

    async def flush(self) -> None:
        """Write what waits to be written: the items are large."""

    async def finish(self) -> None:
        """Write what waits to be written, after the last item of the facet. Items may still follow, as from a start."""

    async def abandon(self) -> None:
        """Take back the item that cannot be finished, because something that belongs to it was refused."""
