"""What documents lend to those beside them.

The words of a question often stand in one turn, and the answer in the next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from firefly_memory.search.candidates import Candidate

BEFORE = 0.7
"""The part of its weight that the document right before lends."""
AFTER = 0.5
"""The part that the document right after lends."""
ANSWERED = 1.0
"""The part that a question lends to the document right after it, which answers it."""
FADING = 0.7
"""With each further step a neighbour lends as much less."""
REACH = 3
"""So many documents before and after are neighbours."""


class Lent(NamedTuple):
    """What a neighbour lent to a document for one word of the question."""

    word: str
    neighbour: str
    """The neighbour's id."""
    weight: float


class Neighbours:
    """The documents of each group by their positions, with the weights that they may lend."""

    def __init__(
        self,
        documents: Iterable[Candidate],
        weights: Mapping[str, Mapping[str, float]],
        questions: Collection[str] = (),
    ) -> None:
        """``weights`` has the weight of each word by the id of the document, ``questions`` the ids of the questions."""
        self._questions = questions
        self._best: dict[tuple[str, int], dict[str, tuple[float, str]]] = {}
        for document in documents:
            if document.group is None or not weights[document.id]:
                continue
            there = self._best.setdefault((document.group, document.position), {})
            for word, weight in weights[document.id].items():
                there[word] = min(there.get(word, (weight, document.id)), (weight, document.id), key=_larger_first)

    def lent_to(self, document: Candidate) -> dict[str, Lent]:
        """For each word, the most that a neighbour lends."""
        lent: dict[str, Lent] = {}
        if document.group is None:
            return lent
        for offset, part in _PARTS:
            there = self._best.get((document.group, document.position + offset))
            for word, (weight, neighbour) in there.items() if there else ():
                loan = weight * (ANSWERED if offset == -1 and neighbour in self._questions else part)
                if word not in lent or loan > lent[word].weight:
                    lent[word] = Lent(word, neighbour, loan)
        return lent


def _larger_first(each: tuple[float, str]) -> tuple[float, str]:
    weight, document = each
    return -weight, document


def _parts() -> Iterator[tuple[int, float]]:
    """How far after the document each neighbour stands, and the part that it lends."""
    for steps in range(1, REACH + 1):
        fading = FADING ** (steps - 1)
        yield -steps, BEFORE * fading
        yield steps, AFTER * fading


_PARTS = tuple(_parts())
