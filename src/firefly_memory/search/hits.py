"""What a search gives back, and the arguments that every search has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast, get_args

from firefly_memory.errors import ConfigurationError
from firefly_memory.reprs import shown
from firefly_memory.search.ranking import TextMatch
from firefly_memory.search.semantic import SemanticMatch
from firefly_memory.validation import at_least, checked_text, true_or_false

Mode = Literal["best", "hybrid", "text", "semantic", "fuzzy"]
"""How a search compares: ``best`` is the best that the store offers, ``hybrid`` joins ``text`` and ``semantic``, and
``fuzzy`` wants the question itself in the text."""

MODES: tuple[str, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a hit came about."""

    scores: Mapping[str, float] = field(default_factory=dict)
    """Its score in each mode that found it."""
    text: TextMatch | None = None
    semantic: SemanticMatch | None = None
    notes: tuple[str, ...] = ()
    """What the search did without, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A document that was found."""

    id: str
    text: str
    score: float
    ranks: Mapping[str, int]
    """Its rank in each mode that found it, from 1 on."""
    explanation: Explanation | None = None


class Request(NamedTuple):
    """The arguments of a search, checked."""

    question: str
    top_k: int
    mode: Mode
    explain: bool


def checked_request(question: Any, top_k: Any, mode: Any, explain: Any = False) -> Request:
    """The arguments of a search. ``ConfigurationError`` for an option, ``InvalidEntryError`` for a question that is no
    text."""
    return Request(
        checked_text("query", question),
        min(at_least(1, "top_k", top_k), 2**31 - 1),  # what every driver takes
        checked_mode(mode),
        true_or_false("explain", explain),
    )


def checked_mode(value: Any) -> Mode:
    """``mode`` as an argument."""
    if value not in MODES:
        names = ", ".join(map(repr, MODES[:-1]))
        raise ConfigurationError(f"mode must be {names} or {MODES[-1]!r}, not {shown(value)}")
    return cast("Mode", value)
