"""How long to wait between attempts."""

from __future__ import annotations

import random
from collections.abc import Iterator


def growing_pauses(first: float = 0.02, longest: float = 0.5) -> Iterator[float]:
    """Seconds between attempts; those who begin together do not meet again."""
    most = first
    while True:
        yield most * random.uniform(0.5, 1.0)  # noqa: S311
        most = min(2 * most, longest)
