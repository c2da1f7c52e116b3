"""How many documents of some scopes have each word: counted for each question where they are few, kept where many."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

from firefly_memory.search.index import COUNTED, EXACT, SearchIndex
from firefly_memory.search.ranking import ScopeCounts

KEPT_FOR = 300.0
"""Seconds that a large count is kept. A large number changes little in that time, and takes long to count."""

_MOST_KEPT = 10_000


class KeptCounts:
    """The large counts of one index, for some minutes."""

    def __init__(self) -> None:
        self._kept: dict[tuple[tuple[str, ...], str], tuple[int, float]] = {}

    async def of(self, index: SearchIndex, scopes: Sequence[str], words: Iterable[str]) -> ScopeCounts:
        """The counts of the words and of all documents in the scopes."""
        key = tuple(sorted(scopes))
        asked = [*key, *dict.fromkeys(words)]
        found = self._of(key, asked)
        counted = await self._counted(index, key, [each for each in asked if each not in found])
        until = time.monotonic() + KEPT_FOR
        if len(self._kept) > _MOST_KEPT:
            self._kept.clear()
        self._kept.update({(key, each): (count, until) for each, count in counted.items() if count > COUNTED})
        found |= counted
        documents = sum(found.pop(scope, 0) for scope in key)
        return ScopeCounts(documents, found)

    def _of(self, scopes: tuple[str, ...], words: Sequence[str]) -> dict[str, int]:
        now = time.monotonic()
        kept = {word: self._kept.get((scopes, word)) for word in words}
        return {word: each[0] for word, each in kept.items() if each is not None and each[1] > now}

    async def _counted(self, index: SearchIndex, scopes: Sequence[str], words: Sequence[str]) -> dict[str, int]:
        return dict(await index.counts(scopes, words, EXACT)) if words else {}


_of_indexes: WeakKeyDictionary[SearchIndex, KeptCounts] = WeakKeyDictionary()


def counts_of(index: SearchIndex) -> KeptCounts:
    """Those of an index, for all searches of this process."""
    return _of_indexes.setdefault(index, KeptCounts())
