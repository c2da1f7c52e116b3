"""What rows can be filtered by beside their scope. Each backend filters before it cuts to a limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple


class Comparison(Enum):
    """How the value of a row is compared with what is asked for."""

    ONE_OF = "one of"
    """It is one of several texts."""
    AT_LEAST = "at least"
    """It is a number, and as large as this or larger."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Something that the rows of a facet can be filtered by."""

    name: str
    """The column or field. A row without a value never passes."""
    comparison: Comparison


class Condition(NamedTuple):
    """A filter, and what is asked for."""

    filter: Filter
    value: Any


Conditions = tuple[Condition, ...]
"""A row passes if it fulfils all of them."""


def conditions_of(filters: Iterable[Filter], wanted: Mapping[str, Any]) -> Conditions:
    """The conditions for what is wanted, by the names of filters. A name that no filter has is an error."""
    known = {each.name: each for each in filters}
    return tuple([Condition(known[name], wanted[name]) for name in sorted(wanted)])


def filters_in(conditions: Conditions) -> tuple[Filter, ...]:
    """The filters of some conditions."""
    return tuple([each.filter for each in conditions])


def passes(row: Any, conditions: Sequence[Condition]) -> bool:
    """Whether a row fulfils all conditions."""
    return all(_fulfils(getattr(row, each.filter.name), each) for each in conditions)


def _fulfils(value: Any, condition: Condition) -> bool:
    if value is None:
        return False
    if condition.filter.comparison is Comparison.ONE_OF:
        return value in condition.value
    return bool(value >= condition.value)
