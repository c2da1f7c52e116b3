"""One order of several: reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

C = 20
"""How little the first ranks differ: a hit of rank r adds ``weight / (C + r)``."""
WEIGHTS = {"text": 1.0, "semantic": 0.5}
"""With equal weights and c = 60 the fused order is worse than that of text alone."""
DEPTH = 100
"""So many hits of each mode count."""


@dataclass(frozen=True, slots=True)
class Fused:
    """A document with the sum of what its ranks add."""

    id: str
    score: float
    ranks: Mapping[str, int]
    """Its rank in each mode that found it, from 1 on."""


def fuse(orders: Mapping[str, Sequence[str]], weights: Mapping[str, float] = WEIGHTS) -> list[Fused]:
    """The ids of each mode, best first, as one order; equal ones by id. A mode that is missing adds nothing."""
    ranks: dict[str, dict[str, int]] = {}
    for mode, ids in orders.items():
        for rank, each in enumerate(ids[:DEPTH], start=1):
            ranks.setdefault(each, {}).setdefault(mode, rank)
    fused = [Fused(each, _score(found, weights), found) for each, found in ranks.items()]
    return sorted(fused, key=lambda each: (-each.score, each.id))


def _score(ranks: Mapping[str, int], weights: Mapping[str, float]) -> float:
    return sum(weights[mode] / (C + ranks[mode]) for mode in sorted(ranks))
