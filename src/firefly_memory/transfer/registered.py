"""The facets as archives and copies see them: their kinds of items, and the options that leave a facet out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from firefly_memory.errors import ConfigurationError, NotSupportedError
from firefly_memory.facets import Absent, Facet, LogOf, Moving, all_facets, load, log_if_there
from firefly_memory.moving import FacetWriter, Kind, Writing
from firefly_memory.protocols import StoreView


@dataclass(frozen=True, slots=True)
class MovedFacet:
    """A facet whose items are archived and copied."""

    facet: Facet
    moving: Moving
    kinds: tuple[Kind, ...]

    @property
    def name(self) -> str:
        return self.facet.name

    @property
    def without(self) -> str | None:
        """What its option says that leaves it out; ``None`` if it is never left out."""
        return None if isinstance(self.moving.without, Absent) else self.moving.without

    @property
    def option(self) -> str:
        return self.facet.option_without

    def all_kinds(self) -> Iterator[Kind]:
        """Each followed by those within it."""
        for kind in self.kinds:
            yield kind
            yield from kind.inner_kinds()

    def is_in(self, view: StoreView) -> bool:
        """Whether the store keeps items of the facet."""
        if isinstance(self.facet.operations, Absent):
            return True
        log: LogOf[object] = LogOf(self.name)
        return log_if_there(view, log) is not None

    def is_missing(self) -> NotSupportedError:
        """The error for items that the target cannot keep."""
        leave = "" if self.without is None else f", and {self.name}=False ({self.option}) leaves them out"
        return NotSupportedError(f"{self.moving.if_missing}{leave}")

    def writer(self, view: StoreView, writing: Writing) -> FacetWriter:
        writer: FacetWriter = load(self.moving, "writer")(view, writing)
        return writer


def moved_facets(without: Collection[str] = (), *, raw_messages: bool = True) -> list[MovedFacet]:
    """In the order of the registry. Those ``without`` names are left out, and, if ``raw_messages`` are, those that
    have nothing else."""
    return [
        each
        for each in _moved(all_facets())
        if each.name not in without and (raw_messages or not each.moving.nothing_but_messages)
    ]


@cache
def _moved(facets: tuple[Facet, ...]) -> tuple[MovedFacet, ...]:
    found = tuple(
        MovedFacet(facet, facet.moving, load(facet.moving, "kinds"))
        for facet in facets
        if isinstance(facet.moving, Moving)
    )
    kinds = [kind for facet in found for kind in facet.all_kinds()]
    for what in ("name", "plural"):
        names = [getattr(kind, what) for kind in kinds]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ConfigurationError(f"several kinds of items have the {what} {', '.join(map(repr, twice))}")
    return found


def left_out(facets: Mapping[str, bool]) -> frozenset[str]:
    """The names of the facets that somebody leaves out, with ``agent_history=False``."""
    known = [each.name for each in moved_facets() if each.without is not None]
    for name, is_wanted in facets.items():
        if name not in known:
            raise ConfigurationError(f"{name!r} cannot be left out; there are options for {', '.join(known)}")
        if not isinstance(is_wanted, bool):
            raise ConfigurationError(f"{name} must be True or False, not {is_wanted!r}")
    return frozenset(name for name, is_wanted in facets.items() if not is_wanted)


def kinds_by_name() -> dict[str, tuple[MovedFacet, Kind]]:
    """Every kind that this version knows."""
    return {kind.name: (facet, kind) for facet in moved_facets() for kind in facet.all_kinds()}
