"""The second stage of the search for text: the best candidates of a database, ranked the same for every database.

BM25, with a factor for the length in place of its own term: longer documents come first. For each word of the question
a document has the larger of its own weight and of what a neighbour lends it, so that an answer is found whose words
stand in the turn before. A question counts less than what answers it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from firefly_memory.search.candidates import Candidate
from firefly_memory.search.kinds import ASKS, kinds_among
from firefly_memory.search.neighbours import Lent, Neighbours
from firefly_memory.search.words import question_words

K1 = 0.9
"""How soon a word that is repeated adds nothing more. b is 0."""
FREQUENT = 0.3
"""A word is frequent if it is in a larger part of the scope's documents."""
SMALL_SCOPE = 1_000
"""In a scope of fewer documents a frequent word costs nothing."""
QUESTION = 0.6
"""The factor for a document that ends with a question: it has the words that are asked for, and no answer."""
KIND = 1.3
"""The factor for a document with a number, a time or a name, if the question asks for that."""
PERSON = 1.5
"""The factor for what a person said who is named in the question, and for what is about them. It is no filter."""


@dataclass(frozen=True, slots=True)
class ScopeCounts:
    """How many documents the scope has, and how many of them have each word. A word that is missing is in none."""

    documents: int
    having: Mapping[str, int]

    def idf(self, word: str) -> float:
        """The weight of a word: the fewer documents have it, the more it says. Never negative."""
        having = min(self.having.get(word, 0), self.documents)
        return log(1 + (self.documents - having + 0.5) / (having + 0.5))


@dataclass(frozen=True, slots=True)
class TextMatch:
    """Why a document has its score for text."""

    words: Mapping[str, float]
    """The words of its own that counted, with their weights."""
    lent: tuple[Lent, ...]
    """The words for which a neighbour counted."""
    person: str | None
    """The person named in the question who said it or whom it is about."""
    length: float = 1.0
    """The factor for its length."""
    question: float = 1.0
    """The factor for a document that ends with a question."""
    kind: float = 1.0
    """The factor for a document of a kind that is asked for."""


@dataclass(frozen=True, slots=True)
class RankedText:
    """A document with its score for text."""

    id: str
    score: float
    match: TextMatch


def words_for_engine(question: Sequence[str], counts: ScopeCounts) -> list[str]:
    """The words of a question that a database is asked for, rarest first. The ranking takes all of them.

    Those in no document are left out, and in a large scope those in very many: each costs much time and says little. A
    question of nothing but such words is asked with the rarest.
    """
    there = sorted((having, word) for word in dict.fromkeys(question) if (having := counts.having.get(word, 0)))
    if counts.documents < SMALL_SCOPE:
        return [word for _, word in there]
    rare = [word for having, word in there if having <= FREQUENT * counts.documents]
    return rare or [word for _, word in there[:1]]


def rank_text(
    question: Sequence[str],
    candidates: Iterable[Candidate],
    counts: ScopeCounts,
    named: Iterable[str] = (),
    kinds: str = "",
) -> list[RankedText]:
    """The candidates that have a word of the question, or are lent one, best first; equal ones by id.

    ``question`` has the words as the index has them, ``named`` the people of :func:`people_named`, and ``kinds``
    the :func:`~firefly_memory.search.kinds.kinds_asked`. The order of the candidates, whose ids differ, does not
    matter.
    """
    documents = list(candidates)
    weights = {word: counts.idf(word) for word in dict.fromkeys(question)}
    own = {document.id: _own_weights(document, weights) for document in documents}
    is_of = {document.id: kinds_among(document.words) for document in documents}
    neighbours = Neighbours(documents, own, {name for name, found in is_of.items() if ASKS in found})
    people = sorted(set(named))
    ranked = [
        _ranked(document, own[document.id], neighbours.lent_to(document), weights, people, is_of[document.id], kinds)
        for document in documents
    ]
    return sorted((each for each in ranked if each.score > 0), key=lambda each: (-each.score, each.id))


def people_of(candidates: Iterable[Candidate]) -> set[str]:
    """Everybody who said something, or whom something is about."""
    return {name for each in candidates for name in (each.who, *each.about) if name}


def people_named(question: str, people: Iterable[str], language: str) -> list[str]:
    """Those of the people in a scope of whom a part of the name is in the question."""
    words = set(question_words(question, language))
    return sorted(name for name in set(people) if words.intersection(question_words(name, language)))


def _own_weights(document: Candidate, weights: Mapping[str, float]) -> dict[str, float]:
    repeated = Counter(word for word in document.words if word in weights)
    return {word: weights[word] * times * (K1 + 1) / (times + K1) for word, times in repeated.items()}


def _ranked(
    document: Candidate,
    own: Mapping[str, float],
    lent: Mapping[str, Lent],
    weights: Mapping[str, float],
    people: Sequence[str],
    is_of: str,
    kinds: str,
) -> RankedText:
    counted: dict[str, float] = {}
    borrowed: list[Lent] = []
    total = 0.0
    for word in weights:  # in the order of the question, so that the sum is the same each time
        loan = lent.get(word)
        if loan is not None and loan.weight > own.get(word, 0.0):
            borrowed.append(loan)
            total += loan.weight
        elif word in own:
            counted[word] = own[word]
            total += own[word]
    person = next((name for name in people if name == document.who or name in document.about), None)
    asks, fits = QUESTION if ASKS in is_of else 1.0, KIND if set(kinds).intersection(is_of) else 1.0
    match = TextMatch(counted, tuple(borrowed), person, document.length_factor, asks, fits)
    score = total * match.length * asks * fits * (1.0 if person is None else PERSON)
    return RankedText(document.id, score, match)
