"""Which facets there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from firefly_memory.concurrency.process_fork import ForkSafeLock
from firefly_memory.errors import ConfigurationError
from firefly_memory.facets.declaration import load_name
from firefly_memory.facets.groups import Facet

FACETS = (
    "firefly_memory.tombstones.facet:FACET",
    "firefly_memory.entries.facet:FACET",
    "firefly_memory.conversations.facet:FACET",
    "firefly_memory.agent_history.facet:FACET",
    "firefly_memory.knowledge.facet:FACET",
    "firefly_memory.feeds.facet:FACET",
    "firefly_memory.longterm.facet:FACET",
)
"""The facets of this library, in the order in which they are archived and copied."""

_registering = ForkSafeLock()
_registered: list[Facet] = []
_all: tuple[Facet, ...] | None = None


def all_facets() -> tuple[Facet, ...]:
    """Every facet, those of this library first."""
    global _all  # noqa: PLW0603 - loaded once, at every store's first use
    if _all is None:
        _all = (*(load_name(name) for name in FACETS), *_registered)
    return _all


def facet_named(name: str) -> Facet:
    """The registered facet of this name."""
    return next(each for each in all_facets() if each.name == name)


def register(facet: Facet) -> None:
    """Add a facet of another package. Before the first store is opened: stores know the facets of that moment.

    The same facet may be registered again. ``ConfigurationError`` for another one with its name.
    """
    global _all  # noqa: PLW0603
    with _registering:
        same_name = next((each for each in all_facets() if each.name == facet.name), None)
        if same_name is facet:
            return
        if same_name is not None:
            raise ConfigurationError(f"there is a facet named {facet.name!r} already, and this is another one")
        _registered.append(facet)
        _all = None


@contextmanager
def registered(facets: Sequence[Facet]) -> Iterator[None]:
    """For tests: these facets as well, for a while."""
    global _all  # noqa: PLW0603
    before = len(_registered)
    for each in facets:
        register(each)
    try:
        yield
    finally:
        del _registered[before:]
        _all = None
