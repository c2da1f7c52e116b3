"""Texts and questions of a made-up language: the frequencies of its words fall as those of a language do (Zipf)."""

from __future__ import annotations

import random
from bisect import bisect
from itertools import accumulate, islice

from firefly_memory.knowledge import Chunk
from firefly_memory.search.languages import stop_words

_WORDS = 50_000
_SESSION = 20


class Language:
    """Makes texts and questions, the same ones for the same ``seed``. The words are the same for each."""

    def __init__(self, seed: int = 1911) -> None:
        words = random.Random(1911)
        letters = "abcdefghijklmnopqrstuvwxyz"
        made = ["".join(words.choices(letters, k=words.randint(4, 10))) for _ in range(_WORDS)]
        self._stops = sorted(stop_words("english"))
        self._words = [*self._stops, *made]
        self._weights = list(accumulate(1 / (rank + 2) for rank in range(len(self._words))))
        self._random = words if seed == 1911 else random.Random(seed)

    def text(self, words: int | None = None) -> str:
        return " ".join(self._word() for _ in range(words or self._random.randint(5, 40)))

    def chunk(self, number: int, words: int | None = None) -> Chunk:
        """The turn with this number, in sessions of twenty."""
        session, position = divmod(number, _SESSION)
        return Chunk(self.text(words), ("Anna", "Ben")[number % 2], None, f"session {session}", position)

    def question(self) -> str:
        others = (word for word in iter(self._word, "") if word not in self._stops)
        words = list(islice(others, 5))
        return " ".join(["what", "did", "the", *words])

    def _word(self) -> str:
        return self._words[bisect(self._weights, self._random.random() * self._weights[-1])]
