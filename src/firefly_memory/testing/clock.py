"""A clock for tests, which moves only when a test advances it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from firefly_memory import clock


class StoppedClock:
    """What the library's stores and entries take the time from inside :func:`stopped`."""

    def __init__(self, moment: datetime) -> None:
        self.moment: datetime = moment.astimezone(UTC)

    def now(self) -> datetime:
        """The instant at which the clock stands."""
        return self.moment

    def advance(self, **by: float) -> None:
        """Move on: ``advance(seconds=30)``, with the arguments of ``timedelta``; backwards works as well."""
        self.moment += timedelta(**by)

    def set(self, moment: datetime) -> None:
        """Set the clock to ``moment``."""
        self.moment = moment.astimezone(UTC)


@contextmanager
def stopped(at: datetime | None = None) -> Iterator[StoppedClock]:
    """Stop the clock of the whole process, at ``at`` or now, for the length of a ``with`` block."""
    standing = StoppedClock(at or datetime.now(UTC))
    with clock.reading_from(standing.now):
        yield standing
