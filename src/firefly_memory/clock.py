"""The one source of time. Stores and entries ask ``now()``; tests set it with ``firefly_memory.testing.clock``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime


def _system_time() -> datetime:
    return datetime.now(UTC)


_source: Callable[[], datetime] = _system_time


def now() -> datetime:
    """The current instant, in UTC."""
    return _source()


def instant_of(text: str) -> datetime:
    """The instant that ISO 8601 writes so, in UTC; ``ValueError`` if it has no time zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


@contextmanager
def reading_from(source: Callable[[], datetime]) -> Iterator[None]:
    """Inside the ``with`` block, the whole process reads the time from ``source``."""
    global _source  # noqa: PLW0603 - the one source of time of the process
    previous, _source = _source, source
    try:
        yield
    finally:
        _source = previous
