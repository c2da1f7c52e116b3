"""Texts and questions whose frequencies of words fall as those of a language do (Zipf).

The frequent words are English ones, in the order of the conversations of ``evaluation`` that are for tuning: they
have endings for the stemmer, and words near them. The rare ones are made up.
"""

from __future__ import annotations

import random
import re
from bisect import bisect
from collections import Counter
from itertools import accumulate, islice

from evaluation.corpus import TUNING, conversations
from firefly_memory.knowledge import Chunk
from firefly_memory.search.languages import stop_words

_WORDS = 50_000
_SESSION = 20
_WORD = re.compile("[a-z]{2,}")


class Language:
    """Makes texts and questions, the same ones for the same ``seed``. The words are the same for each."""

    def __init__(self, seed: int = 1911) -> None:
        words = random.Random(1911)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._stops = sorted(stop_words("english"))
        english = _english(self._stops)
        made = ["".join(words.choices(letters, k=words.randint(4, 10))) for _ in range(_WORDS - len(english))]
        self._words = [*self._stops, *english, *made]
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


def _english(stops: list[str]) -> list[str]:
    """The other words of the conversations, the frequent ones first."""
    texts = (turn.text for each in conversations(TUNING) for turn in each.turns)
    counts = Counter(word for text in texts for word in _WORD.findall(text.lower()))
    return [word for word, _ in counts.most_common() if word not in stops]
