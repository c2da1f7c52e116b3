"""What is made of words, kept in memory: the words of a text are mostly those of the texts before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

MOST = 65_536
"""Words that are kept, the older ones among them. That takes some megabytes."""


class Kept(dict[str, T]):
    """What a function makes of words. Several threads may ask at once; each gets what the function makes.

    The dictionary has the words that were asked for of late. When it is full these become the older ones, and those
    that are not asked for again go the next time. Of a word that is there, nobody has to be told that it was used: so
    it is found several times sooner than in ``lru_cache``.
    """

    def __init__(self, make: Callable[[str], T], longest: int) -> None:
        """Of words with more than ``longest`` characters nothing is kept."""
        super().__init__()
        self._make = make
        self._longest = longest
        self._older: dict[str, T] = {}

    def __missing__(self, word: str) -> T:
        older = self._older
        made = older[word] if word in older else self._make(word)
        if len(word) <= self._longest:
            if len(self) >= MOST // 2:
                self._older = self.copy()
                self.clear()
            self[word] = made
        return made
