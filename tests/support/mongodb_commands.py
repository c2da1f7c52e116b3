"""What is done at the moment when a client of MongoDB sends a command."""

from __future__ import annotations

from collections.abc import Callable

from pymongo import monitoring


class AtCommand(monitoring.CommandListener):
    """Calls ``act`` once, when command ``number`` is about to be sent, or has been answered."""

    def __init__(self) -> None:
        self.arm(0, lambda: None)

    def arm(self, number: int, act: Callable[[], object], *, answered: bool = False) -> None:
        self._left, self._act, self._answered = number, act, answered

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if not self._answered:
            self._count()

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        if self._answered:
            self._count()

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._act()
