"""Copies from one store to another of any kind: it copies the missing items, then compares both stores value by value.

Both stores list their contents in the same order, so a copy walks through the two side by side, in constant memory.
That is how it knows what is there already, and how a copy that broke off goes on when it is started again.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from firefly_memory import clock
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.errors import ConflictError, NotSupportedError
from firefly_memory.moving import Item, Kind, Walk, Writing
from firefly_memory.protocols import Capability, MemoryStore, StoreView
from firefly_memory.stores.adapter import adapt
from firefly_memory.transfer.counts import Counts, Progress, report
from firefly_memory.transfer.registered import left_out, moved_facets
from firefly_memory.transfer.walking import has_items, pairs_of
from firefly_memory.transfer.writer import ItemWriter


@dataclass(slots=True)
class Side:
    """The contents of one store at the time of the comparison."""

    counts: Counts = field(default_factory=Counts)
    _digest: Any = field(default_factory=hashlib.sha256, repr=False)

    @property
    def checksum(self) -> str:
        """SHA-256 over all values, in a form and order that are the same for all stores."""
        digest: str = self._digest.hexdigest()
        return digest

    def add(self, kind: Kind, item: Item) -> None:
        self.counts.add(kind)
        self._digest.update(f"{kind.name} {kind.canonical(item)}\n".encode())


@dataclass(slots=True)
class Copy:
    """The result of a copy."""

    before: Counts = field(default_factory=Counts)
    """The items that the target already had."""
    source: Side = field(default_factory=Side)
    target: Side = field(default_factory=Side)
    beyond: Counts = field(default_factory=Counts)
    """The items that only the target has, and keeps because of ``merge``; no checksum contains them."""
    difference: str | None = None
    """The first difference that is left, because another process wrote to one of the stores."""

    @property
    def equal(self) -> bool:
        return self.difference is None and self.source.checksum == self.target.checksum


class _Sides:
    """The source and the target of a copy."""

    def __init__(self, source: StoreView, target: StoreView, without: frozenset[str]) -> None:
        self.source = source
        self.target = target
        self._facets = moved_facets(without)

    async def check_facets(self) -> None:
        """Whether the target can keep all items of the source."""
        for view in (self.source, self.target):
            if Capability.LISTING not in view.capabilities:
                raise NotSupportedError("a copy needs stores that list their entries, which one of these cannot")
        for facet in self._facets:
            if not facet.is_in(self.target) and await has_items(Walk(self.source), facet):
                raise facet.is_missing()

    async def target_is_empty(self) -> bool:
        for facet in self._facets:
            if await has_items(Walk(self.target), facet):
                return False
        return True

    def pairs(self) -> AsyncIterator[tuple[Kind, Item | None, Item | None]]:
        """All items of both stores, each with the item of the same key in the other store."""
        source = Walk(self.source)
        return pairs_of(source, Walk(self.target, source=source), self._facets)


def copy_store(
    source: MemoryStore,
    target: MemoryStore,
    *,
    merge: bool = False,
    progress: Progress | None = None,
    **facets: bool,
) -> Copy:
    """Copy everything but expired entries from ``source`` into ``target``, then compare the two.

    ``target`` may be empty or have a part of the same, as after a copy that broke off. Anything else there is a
    ``ConflictError`` before anything is written, unless ``merge`` is set: then entries take the place of those with
    their ids, and what ``source`` has nothing of stays. A conversation that has other turns is a ``TurnConflictError``.

    The conversations of pydantic-ai's ``ConversationStore`` are copied too, unless ``agent_history=False`` leaves them
    out on both sides; if ``target`` cannot keep them, that is a ``NotSupportedError`` before anything is written. An
    older copy in ``target`` is replaced if ``source`` has all its messages; a different conversation of the same id is
    a ``ConflictError``. Other facets that can be left out have an argument of their name as well.
    """
    return run_without_loop(
        _copy(_Sides(adapt(source).blocking, adapt(target).blocking, left_out(facets)), merge, progress)
    )


async def async_copy_store(
    source: MemoryStore,
    target: MemoryStore,
    *,
    merge: bool = False,
    progress: Progress | None = None,
    **facets: bool,
) -> Copy:
    """Copy everything but expired entries from ``source`` into ``target``, then compare the two.

    ``target`` may be empty or have a part of the same, as after a copy that broke off. Anything else there is a
    ``ConflictError`` before anything is written, unless ``merge`` is set: then entries take the place of those with
    their ids, and what ``source`` has nothing of stays. A conversation that has other turns is a ``TurnConflictError``.

    The conversations of pydantic-ai's ``ConversationStore`` are copied too, unless ``agent_history=False`` leaves them
    out on both sides; if ``target`` cannot keep them, that is a ``NotSupportedError`` before anything is written. An
    older copy in ``target`` is replaced if ``source`` has all its messages; a different conversation of the same id is
    a ``ConflictError``. Other facets that can be left out have an argument of their name as well.
    """
    return await _copy(_Sides(adapt(source).suspending, adapt(target).suspending, left_out(facets)), merge, progress)


async def _copy(sides: _Sides, merge: bool, progress: Progress | None) -> Copy:
    await sides.check_facets()
    if not merge and not await sides.target_is_empty():
        await _check(sides, progress)
    result = Copy()
    counts = Counts()
    writer = ItemWriter(sides.target, counts, Writing(sides.source, replace=merge))
    async for kind, mine, theirs in sides.pairs():
        if mine is not None:
            there = theirs is not None and kind.canonical(mine) == kind.canonical(theirs)
            await writer.take(kind, mine, there=there)
            if there:
                result.before.add(kind)
            report(progress, "copying", counts)
    await writer.finish()
    await _compare(sides, result, merge, progress)
    return result


async def _check(sides: _Sides, progress: Progress | None) -> None:
    """Refuse a target that has items or values that the source does not have: they would be lost."""
    seen = Counts()
    replaced: Kind | None = None  # of the item that is being replaced, with all that belongs to it
    async for kind, mine, theirs in sides.pairs():
        if replaced is None or kind not in replaced.inner_kinds():
            replaced = None
            if theirs is not None and not _is_part(kind, mine, theirs):
                if not await _may_replace(sides.source, kind, mine, theirs):
                    raise _conflict(kind, mine, theirs)
                replaced = kind
        seen.add(kind)
        report(progress, "looking", seen)


def _conflict(kind: Kind, mine: Item | None, theirs: Item) -> ConflictError:
    state = "is not in the source" if mine is None else "is another one in the source"
    return ConflictError(
        f"{kind.describe(theirs)} of the target {state}; nothing was copied. Copy to an empty store, or merge: "
        "entries then take the place of those with their ids, and the rest of the target stays"
    )


def _is_part(kind: Kind, mine: Item | None, theirs: Item) -> bool:
    if _is_expired(theirs):
        return True
    if mine is None:
        return False
    return kind.is_part(mine, theirs) or kind.canonical(mine) == kind.canonical(theirs)


async def _may_replace(source: StoreView, kind: Kind, mine: Item | None, theirs: Item) -> bool:
    return mine is not None and kind.may_replace is not None and await kind.may_replace(source, mine, theirs)


async def _compare(sides: _Sides, result: Copy, merge: bool, progress: Progress | None) -> None:
    async for kind, mine, theirs in sides.pairs():
        if mine is None and theirs is not None and merge:
            result.beyond.add(kind)
            continue
        if (mine is None or theirs is None) and _is_expired(mine or theirs or {}):
            continue  # while it was being read
        if mine is not None:
            result.source.add(kind, mine)
        if theirs is not None:
            result.target.add(kind, theirs)
        result.difference = result.difference or _difference(kind, mine, theirs)
        report(progress, "comparing", result.source.counts)


def _difference(kind: Kind, mine: Item | None, theirs: Item | None) -> str | None:
    if mine is None or theirs is None:
        return f"{kind.describe(mine or theirs or {})} is only in the {'target' if mine is None else 'source'}"
    same = kind.canonical(mine) == kind.canonical(theirs)
    return None if same else f"{kind.describe(mine)} is another one in the target"


def _is_expired(item: Item) -> bool:
    until = item.get("expires_at")
    return until is not None and datetime.fromisoformat(until) <= clock.now()
