"""The words of a query in their order, as they are looked for in facts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from firefly_memory.search.searchable import searchable

MOST_WORDS = 100
"""So many words of a pattern a database is asked for. PostgreSQL needs more of its stack for each."""

MOST_CHARACTERS = 250
"""They have so many characters together. LIKE compares each of them at each place of a text: with 9,000 of them, a
text of a megabyte takes SQLite and PostgreSQL more than ten seconds."""

Pattern = tuple[str, ...]


def pattern_of(query: str) -> Pattern:
    """The words of a query, in their searchable form."""
    return tuple(searchable(query).split())


def beginning_of(pattern: Pattern) -> Pattern:
    """As much of a pattern as every database takes. What fits the pattern fits its beginning; the last word may be
    cut."""
    words = pattern[:MOST_WORDS]
    ends = accumulate(map(len, words))
    parts = (word[: max(0, MOST_CHARACTERS - end + len(word))] for word, end in zip(words, ends, strict=True))
    return tuple([part for part in parts if part])


def fits(pattern: Iterable[str], searchable_form: str) -> bool:
    """Whether a line has these words in this order, with anything between them."""
    words = list(pattern)
    return any(_has_in_order(words, line) for line in searchable_form.split("\n"))


def _has_in_order(words: Iterable[str], line: str) -> bool:
    start = 0
    for word in words:
        start = line.find(word, start)
        if start < 0:
            return False
        start += len(word)
    return True
