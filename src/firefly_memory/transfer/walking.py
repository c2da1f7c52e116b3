"""Walks over all items of one store or of two stores at the same time, in the order of the registry. Memory use is
constant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any

from firefly_memory.moving import Item, Kind, Placed, Walk
from firefly_memory.transfer.registered import MovedFacet

Pair = tuple[Item | None, Item | None]
"""The items of the source and the target with the same key."""


def items_of(walk: Walk, facets: Iterable[MovedFacet]) -> AsyncIterator[tuple[Kind, Item]]:
    """Each item, followed by its parts."""
    return _items(walk, [kind for facet in facets if facet.is_in(walk.view) for kind in facet.kinds], None)


async def _items(walk: Walk, kinds: Iterable[Kind], outer: Item | None) -> AsyncIterator[tuple[Kind, Item]]:
    for kind in kinds:
        async for _, item in kind.read(walk, outer):
            yield kind, item
            if kind.within:
                async for found in _items(walk, kind.within, item):
                    yield found


async def has_items(walk: Walk, facet: MovedFacet) -> bool:
    """Whether a store has any item of a facet."""
    if facet.is_in(walk.view):
        for kind in facet.kinds:
            async with aclosing(kind.read(walk, None)) as items:
                async for _ in items:
                    return True
    return False


async def pairs_of(
    source: Walk, target: Walk, facets: Iterable[MovedFacet]
) -> AsyncIterator[tuple[Kind, Item | None, Item | None]]:
    """All items of both stores, each with the item of the same key in the other store."""
    for facet in facets:
        sides = [walk if facet.is_in(walk.view) else None for walk in (source, target)]
        async for found in _pairs(sides, facet.kinds, None):
            yield found


async def _pairs(
    sides: list[Walk | None], kinds: Iterable[Kind], outer: Pair | None
) -> AsyncIterator[tuple[Kind, Item | None, Item | None]]:
    for kind in kinds:
        left, right = (_side(walk, kind, outer, number) for number, walk in enumerate(sides))
        async for pair in _side_by_side(left, right, descending=kind.descending):
            yield kind, *pair
            if kind.within:
                async for found in _pairs(sides, kind.within, pair):
                    yield found


def _side(walk: Walk | None, kind: Kind, outer: Pair | None, number: int) -> Placed:
    if walk is None or (outer is not None and outer[number] is None):
        return _nothing()
    return kind.read(walk, None if outer is None else outer[number])


async def _nothing() -> Placed:
    none: tuple[tuple[Any, Item], ...] = ()
    for each in none:
        yield each


async def _side_by_side(left: Placed, right: Placed, *, descending: bool) -> AsyncIterator[Pair]:
    """Merge two streams by their keys. The right stream is read one step ahead, so that it does not contain items that
    are written under the keys already returned."""
    mine, theirs = await anext(left, None), await anext(right, None)
    while mine is not None or theirs is not None:
        if mine is not None and theirs is not None and mine[0] == theirs[0]:
            pair = mine[1], theirs[1]
            mine, theirs = await anext(left, None), await anext(right, None)
            yield pair
        elif theirs is None or (mine is not None and (mine[0] < theirs[0]) is not descending):
            assert mine is not None
            yield mine[1], None
            mine = await anext(left, None)
        else:
            only_theirs = theirs[1]
            theirs = await anext(right, None)
            yield None, only_theirs
