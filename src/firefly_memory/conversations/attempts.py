"""When a strategy failed for a conversation, and when it is asked again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from firefly_memory import clock

logger = logging.getLogger("firefly_memory")

_FIRST, _LONGEST = timedelta(seconds=5), timedelta(minutes=10)
_MOST = 10_000
"""The most conversations that are remembered. Beyond that, the oldest failure is forgotten."""

OnError = Callable[[Exception, str], object]
"""Gets the error of a strategy, and the id of the conversation."""


@dataclass(slots=True)
class Attempts:
    """The failed attempts of this process. After each, the pause before the next one is twice as long."""

    on_error: OnError | None = None
    pauses: bool = False
    _failed: dict[str, tuple[int, datetime]] = field(default_factory=dict)

    def must_wait(self, name: str) -> bool:
        """Whether it is too early for the next attempt."""
        failures, until = self._failed.get(name, (0, None))
        return bool(failures) and until is not None and clock.now() < until

    def failed(self, name: str, conversation_id: str, error: Exception) -> None:
        if self.pauses:
            failures = self._failed.pop(name, (0, None))[0] + 1
            pause = min(_FIRST * 2 ** min(failures - 1, 10), _LONGEST)
            self._failed[name] = (failures, clock.now() + pause)
            if len(self._failed) > _MOST:
                self._failed.pop(next(iter(self._failed)), None)
        if self.on_error is not None:
            try:
                self.on_error(error, conversation_id)
            except Exception:
                logger.exception("on_error failed for conversation %r", conversation_id)

    def succeeded(self, name: str) -> None:
        self._failed.pop(name, None)
