"""Words near those of a question: "fix" for "repair", "sweet" for "dessert".

Nobody wrote them down. They are the words whose vectors are nearest in the table of an embedder. A text that has one
counts for the word of the question, but less than a text with the word itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from firefly_memory.errors import EmbedderError, MissingDependencyError
from firefly_memory.search.languages import stop_words
from firefly_memory.search.ranking import Near
from firefly_memory.search.words import index_words, question_pieces, question_words

PART = 0.7
"""A near word counts for this part of the weight, times the cosine."""
LEAST = 0.25
"""Words with a smaller cosine are not near."""
MOST = 8
"""So many words are near one word of the question."""
WORDS = 16
"""So many words of a question have near ones: its first words."""
RARE = 30
"""Near words that have no more documents together are rare."""
LARGEST_SCOPE = 10_000
"""In a scope of more documents the words count as they are: to count all of them would take long."""

_LANGUAGES = frozenset({"english"})
"""Those in which this was measured."""


@runtime_checkable
class WordTable(Protocol):
    """An embedder with a vector for each of many words, as the default one is."""

    def nearest_words(self, word: str) -> Sequence[tuple[str, float]]:
        """Other words and their cosines with this word, the largest first."""
        ...


class NearWords(NamedTuple):
    """The words near those of one question, in one scope."""

    parts: Near
    rare: Sequence[str]
    """Those that the engine is asked for."""


NO_NEAR_WORDS = NearWords({}, ())


def near_words(embedder: object, question: str, language: str) -> Near:
    """For each word that is near words of the question, the part of their weights that it counts for; all as the index
    has them. None without a :class:`WordTable`, or if that fails."""
    if language not in _LANGUAGES or not isinstance(embedder, WordTable):
        return {}
    try:
        return _near_words(embedder, question, language)
    except (EmbedderError, MissingDependencyError):
        return {}


def _near_words(table: WordTable, question: str, language: str) -> Near:
    found: dict[str, dict[str, float]] = {}
    asked = {*question_words(question, language)}
    for piece in question_pieces(question, language)[:WORDS]:
        if not (piece.text.isascii() and piece.text.isalpha()):
            continue
        for word in asked.intersection(piece.words):
            for near, cosine in _near(table, piece.text.lower(), language):
                if near not in asked:
                    parts = found.setdefault(near, {})
                    parts[word] = max(parts.get(word, 0.0), PART * cosine)
    return found


def rare_ones(having: Mapping[str, int]) -> list[str]:
    """The words that the engine is asked for, of those that so many documents have: the rarest, as long as they have no
    more than :data:`RARE` documents together. The others count in the ranking only."""
    chosen: list[str] = []
    postings = 0
    for count, word in sorted((count, word) for word, count in having.items() if count):
        postings += count
        if postings > RARE:
            break
        chosen.append(word)
    return chosen


def _near(table: WordTable, word: str, language: str) -> Iterator[tuple[str, float]]:
    """Several forms of a word are one, with the largest cosine of them."""
    seen = {*index_words(word, language)}
    left_out = stop_words(language)
    for each, cosine in table.nearest_words(word):
        if cosine < LEAST or len(seen) > MOST:
            return
        (stem,) = index_words(each, language)
        if stem not in seen and each not in left_out:
            seen.add(stem)
            yield stem, cosine
