"""What is ranked: documents of one scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A document that may be a hit, or a neighbour of one."""

    id: str
    words: Sequence[str] = ()
    """Those of the index, each as often as it is there. The ranking by vectors does without."""
    who: str | None = None
    """Who said it."""
    about: Sequence[str] = ()
    """The people it is about."""
    group: str | None = None
    """Documents of one group are neighbours: the turns of a session, the items of an episode, the facts of a source."""
    position: int = 0
    """Its number in the group."""
