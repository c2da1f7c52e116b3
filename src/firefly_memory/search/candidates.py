"""What is ranked: documents of one scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A document that may be a hit, or a neighbour of one."""

    id: str
    words: Sequence[str] = ()
    """Those of the index, each as often as it is there."""
    length: int | None = None
    """How many words it has, where they are not given."""
    who: str | None = None
    """Who said it."""
    about: Sequence[str] = ()
    """The people it is about."""
    group: str | None = None
    """Documents of one group are neighbours: the turns of a session, the items of an episode, the facts of a source."""
    position: int = 0
    """Its number in the group."""

    @property
    def length_factor(self) -> float:
        """What its scores are multiplied with: of two turns with the same words, the longer one says more."""
        return 1 + _LENGTH * log2(1 + min(len(self.words) if self.length is None else self.length, _LONG))


_LENGTH = 0.2
_LONG = 64
"""Words from which on a document is just as long as any other."""

LARGEST_FACTOR = 1 + _LENGTH * log2(1 + _LONG)
"""No :attr:`Candidate.length_factor` is larger."""
