"""What the score of a document is multiplied with, for text and for meaning, whatever its words are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from firefly_memory.search.candidates import Candidate
from firefly_memory.search.kinds import ASKS, kinds_among

QUESTION = 0.6
"""The factor for a document that ends with a question: it has the words that are asked for, and no answer."""
KIND = 1.3
"""The factor for a document with a number, a time or a name, if the question asks for that."""
PERSON = 1.5
"""The factor for what a person said who is named in the question, and for what is about them. It is no filter."""


class Factors(NamedTuple):
    """Those of one document."""

    person: str | None
    """The person named in the question who said it or whom it is about."""
    length: float
    """The factor for its length."""
    question: float
    """The factor for a document that ends with a question."""
    kind: float
    """The factor for a document of a kind that is asked for."""

    @property
    def product(self) -> float:
        """All of them together."""
        return self.length * self.question * self.kind * (1.0 if self.person is None else PERSON)


def factors_of(documents: Iterable[Candidate], named: Iterable[str], kinds: str) -> dict[str, Factors]:
    """Those of each document, by id, for a question that names these people and asks for these kinds."""
    people, asked = sorted(set(named)), set(kinds)
    return {each.id: _factors(each, people, asked) for each in documents}


def questions_among(factors: Mapping[str, Factors]) -> set[str]:
    """The ids of the documents that end with a question."""
    return {name for name, each in factors.items() if each.question == QUESTION}


def _factors(document: Candidate, people: Sequence[str], asked: set[str]) -> Factors:
    person = next((name for name in people if name == document.who or name in document.about), None)
    is_of = kinds_among(document.words)
    asks, fits = QUESTION if ASKS in is_of else 1.0, 1.0 if asked.isdisjoint(is_of) else KIND
    return Factors(person, document.length_factor, asks, fits)
