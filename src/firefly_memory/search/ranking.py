"""The second stage of the search for text: the best candidates of a database, ranked the same for every database.

BM25, with a factor for the length in place of its own term: longer documents come first. For each word of the question
a document has the larger of its own weight and of what a neighbour lends it, so that an answer is found whose words
stand in the turn before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from operator import itemgetter

from firefly_memory.search.candidates import Candidate
from firefly_memory.search.factors import Factors, factors_of, questions_among
from firefly_memory.search.neighbours import Lent, Neighbours
from firefly_memory.search.words import question_words

K1 = 0.9
"""How soon a word that is repeated adds nothing more. b is 0."""
FREQUENT = 0.3
"""A word is frequent if it is in a larger part of the scope's documents."""
SMALL_SCOPE = 1_000
"""In a scope of fewer documents a frequent word costs nothing."""

Near = Mapping[str, Mapping[str, float]]
"""For each word that is near words of a question, the part of their weights that it counts for."""


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
    """The words of its own that counted, with their weights: words of the question, or words near these."""
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
    near: Near | None = None,
    most: int | None = None,
) -> list[RankedText]:
    """The candidates that have a word of the question, or one near it, or are lent one: the best ``most``, best first,
    equal ones by id.

    ``question`` has the words as the index has them, ``named`` the people of :func:`people_named`, ``kinds`` the
    :func:`~firefly_memory.search.kinds.kinds_asked`, and ``near`` the
    :func:`~firefly_memory.search.near_words.near_words`. The order of the candidates, whose ids differ, does not
    matter.
    """
    documents = list(candidates)
    weights = {word: counts.idf(word) for word in dict.fromkeys(question)}
    factors = factors_of(documents, named, kinds)
    found = _found(documents, weights, near or {})
    own = {name: {asked: weight for asked, (weight, _) in of.items()} for name, of in found.items()}
    neighbours = Neighbours(documents, own, questions_among(factors))
    scored: list[tuple[float, str, dict[str, Lent]]] = []
    for document in documents:
        lent = neighbours.lent_to(document)
        total = _total(weights, own[document.id], lent)
        if total > 0:
            scored.append((-total * factors[document.id].product, document.id, lent))
    scored.sort(key=itemgetter(0, 1))
    return [
        RankedText(name, -score, _match(weights, found, name, lent, factors[name]))
        for score, name, lent in scored[:most]
    ]


def people_of(candidates: Iterable[Candidate]) -> set[str]:
    """Everybody who said something, or whom something is about."""
    return {name for each in candidates for name in (each.who, *each.about) if name}


def people_named(question: str, people: Iterable[str], language: str) -> list[str]:
    """Those of the people in a scope of whom a part of the name is in the question."""
    words = set(question_words(question, language))
    return sorted(name for name in set(people) if words.intersection(question_words(name, language)))


def _found(
    documents: Iterable[Candidate], weights: Mapping[str, float], near: Near
) -> dict[str, dict[str, tuple[float, str]]]:
    """For each document, and each word of the question that it has, or has one near it: what that counts, and the word
    that it has."""
    wanted = {*weights, *near}
    return {
        each.id: _found_in(each, weights, near, words) if (words := wanted.intersection(each.words)) else {}
        for each in documents
    }


def _found_in(
    document: Candidate, weights: Mapping[str, float], near: Near, words: Iterable[str]
) -> dict[str, tuple[float, str]]:
    found: dict[str, tuple[float, str]] = {}
    for word in words:
        times = document.words.count(word)
        often = times * (K1 + 1) / (times + K1)
        for asked, part in near[word].items() if word not in weights else ((word, 1.0),):
            found[asked] = max(found.get(asked, (0.0, "")), (weights[asked] * part * often, word))
    return found


def _total(weights: Iterable[str], own: Mapping[str, float], lent: Mapping[str, Lent]) -> float:
    """For each word the larger one of its own weight and the loan."""
    total = 0.0
    for asked in weights:  # in the order of the question, so that the sum is the same each time
        weight = own.get(asked, 0.0)
        total += max(weight, lent[asked].weight) if asked in lent else weight
    return total


def _match(
    weights: Iterable[str],
    found: Mapping[str, Mapping[str, tuple[float, str]]],
    document: str,
    lent: Mapping[str, Lent],
    factors: Factors,
) -> TextMatch:
    own = found[document]
    counted: dict[str, float] = {}
    borrowed: list[Lent] = []
    for asked in weights:
        weight, word = own.get(asked, (0.0, ""))
        loan = lent.get(asked)
        if loan is not None and loan.weight > weight:
            _, word = found[loan.neighbour][asked]
            borrowed.append(loan._replace(word=word))
        elif word:
            counted[word] = counted.get(word, 0.0) + weight
    return TextMatch(counted, tuple(borrowed), factors.person, factors.length, factors.question, factors.kind)
