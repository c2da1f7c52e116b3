"""Facts as lines of the instructions, and how many of them fit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from firefly_memory.messages.quoted_text import fact_line, in_a_fence
from firefly_memory.messages.storage import sendable
from firefly_memory.tokens.estimator import TokenEstimator

logger = logging.getLogger("firefly_memory")

LONGEST_TOKEN = 100
"""A text with more characters for each token of its room does not fit, and need not be counted."""


def fact_text(
    key: str, value: Any, *, is_fenced: bool = False, line: Callable[[str, Any], str] = fact_line
) -> str | None:
    """A fact as ``line`` writes it; ``None`` for a value that cannot be written as text."""
    try:
        text = in_a_fence({key: value}) if is_fenced else line(key, value)
    except (RecursionError, TypeError, ValueError) as exc:
        logger.warning("the fact %r is not in the instructions: %s: %s", key, type(exc).__name__, exc)
        return None
    return sendable(text)


def fitting(texts: Iterable[str], room: int, estimator: TokenEstimator) -> set[int]:
    """The positions of the lines that ``room`` tokens have room for. The first ones come first, and one that is too
    long leaves its room to the next."""
    chosen: set[int] = set()
    for position, text in enumerate(texts):
        if room <= 1:
            break
        if len(text) > room * LONGEST_TOKEN:
            continue
        tokens = 1 + _counted(estimator, text)
        if tokens <= room:
            room -= tokens
            chosen.add(position)
    return chosen


def _counted(estimator: TokenEstimator, text: str) -> int:
    try:
        return estimator.estimate_turn("", text) - estimator.estimate_turn("", "")
    except Exception as exc:  # noqa: BLE001 - a warning that is an error, or the user's own: no run is lost for it
        logger.warning("the tokens of a fact were not counted (%s: %s), its characters were", type(exc).__name__, exc)
        return len(text)
