"""The numbers of items of each kind that an export, an import or a copy has processed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

from firefly_memory.moving import Kind
from firefly_memory.reprs import even_half_built
from firefly_memory.transfer.registered import moved_facets


class Counted(Protocol):
    """The part of counts that a progress bar needs."""

    @property
    def total(self) -> int: ...

    def in_words(self) -> str: ...


Progress = Callable[[str, Any], None]
"""``progress(step, counts)``: called repeatedly with the name of the step, such as ``"copying"``, and with its counts
so far, a :class:`Counted`."""


def report(progress: Progress | None, step: str, counts: Counted) -> None:
    if progress is not None:
        progress(step, counts)


def _names_in_archives() -> dict[str, str]:
    """By plural, the names that differ."""
    kinds = (kind for facet in moved_facets() for kind in facet.all_kinds())
    return {kind.plural: kind.plural_in_archives for kind in kinds if kind.plural_in_archives is not None}


class Counts:
    """Numbers of items, each by the plural of its kind: ``counts.entries``, ``counts.turns``.

    ``left_out`` are things that an import did not take from an archive that is not trusted, such as messages that may
    speak as the system.
    """

    def __init__(self, **numbers: int) -> None:
        unknown = numbers.keys() - {kind.plural for facet in moved_facets() for kind in facet.all_kinds()}
        if unknown:
            raise TypeError(f"there is no kind of items for {sorted(unknown)}")
        self._numbers = Counter(numbers)
        self.left_out = 0

    def __getattr__(self, name: str) -> int:
        if name.startswith("_") or all(name != kind.plural for facet in moved_facets() for kind in facet.all_kinds()):
            raise AttributeError(f"there is no kind of items for {name!r}")
        return self._numbers[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and self._numbers == other._numbers

    def __hash__(self) -> int:
        raise TypeError("counts grow, so they have no hash")

    @even_half_built
    def __repr__(self) -> str:
        return f"Counts({', '.join(f'{name}={number}' for name, number in self.as_dict().items())})"

    @property
    def total(self) -> int:
        return self._numbers.total()

    def add(self, kind: Kind) -> None:
        self._numbers[kind.plural] += 1

    def as_dict(self) -> dict[str, int]:
        """By plural. Kinds that every release knows are always there; others, if there are any."""
        kinds = (kind for facet in moved_facets() for kind in facet.all_kinds())
        return {each.plural: self._numbers[each.plural] for each in kinds if each.since is None or self._any_of(each)}

    def as_archived(self) -> dict[str, int]:
        """The same for the last line of an archive."""
        names = _names_in_archives()
        return {names.get(name, name): number for name, number in self.as_dict().items()}

    @classmethod
    def of_archive(cls, numbers: Mapping[str, int]) -> Self:
        """What the last line of an archive says."""
        plurals = {archived: plural for plural, archived in _names_in_archives().items()}
        return cls(**{plurals.get(name, name): number for name, number in numbers.items()})

    def _any_of(self, kind: Kind) -> bool:
        return self._numbers[kind.plural] > 0

    def in_words(self) -> str:
        """For people. Facets that can be left out are named if there is something of them."""
        found = [
            self._words(kind)
            for facet in moved_facets()
            for kind in facet.kinds
            if facet.without is None or self._any_of(kind)
        ]
        words = ", ".join(found)
        if self.left_out:
            words += f"; left out {self.left_out:,} things that an untrusted archive may not have"
        return words

    def _words(self, kind: Kind) -> str:
        words = f"{self._numbers[kind.plural]:,} {kind.noun}"
        within = [self._words(each) for each in kind.within if each.since is None or self._any_of(each)]
        return words + (f" with {' and '.join(within)}" if within else "")
