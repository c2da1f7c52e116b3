"""What every example keeps: it ends soon, takes little memory, and fails with an error of ours or not at all."""

from __future__ import annotations

import faulthandler
import resource
import signal
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from firefly_memory.errors import FireflyMemoryError

SECONDS = 30
"""For one example on a busy machine; a healthy one takes some milliseconds."""

KILOBYTES = 400_000
"""By which the process may grow during one example."""


class TookTooLongError(BaseException):
    """Not an ``Exception``: nobody on the way may catch it."""


@contextmanager
def bounded() -> Iterator[None]:
    """The block ends within ``SECONDS``, and takes no more than ``KILOBYTES``."""

    def stop(_: int, __: FrameType | None) -> None:
        faulthandler.dump_traceback()
        raise TookTooLongError(f"this goes on for more than {SECONDS} seconds")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    earlier = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < KILOBYTES, f"this took {grown} kB of memory"


async def typed(operation: Callable[[], Awaitable[Any]]) -> FireflyMemoryError | None:
    """The error of ours that ``operation`` ends with, if it ends with one. Every other error is a find."""
    try:
        await operation()
    except FireflyMemoryError as error:
        "".join(traceback.format_exception(error))  # which must be possible as well
        return error
    return None
