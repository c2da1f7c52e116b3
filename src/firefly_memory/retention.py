"""Delete what is too old or too much: by the age, the number and the tokens of conversations.

Nothing is deleted unasked: each of the functions needs a bound. Entries are not touched: they have an ``expires_at``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

from firefly_memory import clock
from firefly_memory.concurrency.sync_bridge import run_without_loop
from firefly_memory.errors import ConfigurationError
from firefly_memory.identifiers import stored_name
from firefly_memory.people import Bounds, Pruner, parts_in
from firefly_memory.protocols import MemoryStore, StoreView
from firefly_memory.settings import MemorySettings
from firefly_memory.stores.adapter import adapt
from firefly_memory.validation import at_least, duration

__all__ = ["Pruned", "async_prune", "prune"]


Progress = Callable[[Mapping[str, int]], None]
"""Is called with the rows that were deleted so far, by kind."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was deleted."""

    rows: Mapping[str, int]
    """How many rows of each kind; the kinds are those of :mod:`firefly_memory.service`."""
    is_dry_run: bool
    """Whether the rows were only counted."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What is to stay. Each bound that is not ``None`` holds for itself, and for each owner apart."""

    older_than: timedelta | None = None
    keep_last: int | None = None
    max_tokens: int | None = None

    @classmethod
    def of(cls, older_than: Any = None, keep_last: Any = None, max_tokens: Any = None) -> Self:
        """The arguments of :func:`prune`, checked."""
        return cls(
            None if older_than is None else _past("older_than", older_than),
            None if keep_last is None else at_least(1, "keep_last", keep_last),
            None if max_tokens is None else at_least(1, "max_tokens", max_tokens),
        )

    @classmethod
    def of_settings(cls, settings: MemorySettings) -> Self:
        return cls.of(settings.retention_older_than, settings.retention_keep_last)

    @property
    def is_set(self) -> bool:
        return self != type(self)()

    def bounds(self, owner: str | None = None) -> Bounds:
        """As of now. ``owner`` is in the stored form."""
        before = None if self.older_than is None else clock.now() - self.older_than
        return Bounds(before=before, keep_last=self.keep_last, max_tokens=self.max_tokens, owner=owner)


def _past(name: str, value: Any) -> timedelta:
    """A length of time that began after the year 1."""
    length = duration(name, value)
    try:
        clock.now() - length
    except OverflowError:
        raise ConfigurationError(f"{name} is longer than the calendar") from None
    return length


def prune(
    store: MemoryStore,
    *,
    older_than: timedelta | float | str | None = None,
    keep_last: int | None = None,
    max_tokens: int | None = None,
    owner: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Pruned:
    """Delete the conversations that are out of bounds, with their turns and facts, and what other facets have that is
    out of bounds; what was deleted.

    ``older_than`` is a ``timedelta``, seconds, or text such as ``"90d"``, ``"12h"`` or ``"30m"``: a conversation goes
    whose newest turn is older. ``keep_last`` is how many conversations stay, those with the newest turns.
    ``max_tokens`` is how many tokens stay, those of the newest conversations. Each bound counts for each owner apart,
    and for all conversations without an owner together. With ``owner``, only those of this person go.
    ``ConfigurationError`` without a bound.

    A conversation to which somebody has appended meanwhile stays. What was interrupted is simply started again.
    ``dry_run`` only counts. ``progress(rows)`` is called after each batch; a dry run tells the total.
    """
    asked = _asked(older_than, keep_last, max_tokens, owner)
    return run_without_loop(prune_view(adapt(store).blocking, asked, dry_run=dry_run, progress=progress))


async def async_prune(
    store: MemoryStore,
    *,
    older_than: timedelta | float | str | None = None,
    keep_last: int | None = None,
    max_tokens: int | None = None,
    owner: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Pruned:
    """Delete the conversations that are out of bounds, with their turns and facts, and what other facets have that is
    out of bounds; what was deleted.

    ``older_than`` is a ``timedelta``, seconds, or text such as ``"90d"``, ``"12h"`` or ``"30m"``: a conversation goes
    whose newest turn is older. ``keep_last`` is how many conversations stay, those with the newest turns.
    ``max_tokens`` is how many tokens stay, those of the newest conversations. Each bound counts for each owner apart,
    and for all conversations without an owner together. With ``owner``, only those of this person go.
    ``ConfigurationError`` without a bound.

    A conversation to which somebody has appended meanwhile stays. What was interrupted is simply started again.
    ``dry_run`` only counts. ``progress(rows)`` is called after each batch; a dry run tells the total.
    """
    asked = _asked(older_than, keep_last, max_tokens, owner)
    return await prune_view(adapt(store).suspending, asked, dry_run=dry_run, progress=progress)


def _asked(older_than: Any, keep_last: Any, max_tokens: Any, owner: str | None) -> Bounds:
    retention = Retention.of(older_than, keep_last, max_tokens)
    if not retention.is_set:
        raise ConfigurationError("prune needs older_than, keep_last or max_tokens: nothing is deleted unasked")
    return retention.bounds(None if owner is None else stored_name("owner", owner))


async def prune_view(
    view: StoreView, bounds: Bounds, *, dry_run: bool = False, progress: Progress | None = None
) -> Pruned:
    """:func:`prune`, in either mode: the walk over the facets."""
    rows = Counter[str]()
    for pruner in _pruners_in(view):
        async for doomed in pruner.doomed(bounds):
            if dry_run:
                for each in doomed:
                    rows.update(each.counts)
            else:
                rows.update(await pruner.delete(doomed))
            if progress is not None:
                progress(rows)
    return Pruned(dict(rows), dry_run)


def _pruners_in(view: StoreView) -> Iterator[Pruner]:
    """Those of the facets that the store keeps."""
    return parts_in(view, "retention")
