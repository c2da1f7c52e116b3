"""How far a command is that takes a while, where somebody watches: on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from firefly_memory.transfer.counts import Counted, Progress

Total = Callable[[str], int | None]
"""How far a step goes, if that is known; asked when the step begins, and only where somebody watches."""

EVERY = 5.0
"""The seconds between two lines where there is no bar."""


def _total(counts: Counted) -> int:
    return counts.total


@contextmanager
def progress_bar(
    step: str, *, quiet: bool, total: Total, unit: str = "", done: Callable[[Counted], int] = _total
) -> Iterator[Progress | None]:
    """``None`` where nobody watches; a line now and then where the extra ``cli`` is not installed.

    The bar begins with ``step``, and anew where the step changes. With a total it shows the time that is left as well;
    a total that was too small is no longer shown once it is passed. ``done`` says how far the counts are.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        yield _lines()
        return
    now = step
    with tqdm(
        desc=step, total=total(step), unit=unit, unit_scale=bool(unit), file=sys.stderr, dynamic_ncols=True, leave=False
    ) as bar:

        def progress(step: str, counts: Counted) -> None:
            nonlocal now
            if step != now:
                now = step
                bar.set_description(step, refresh=False)
                bar.reset(total(step))
            bar.set_postfix_str(counts.in_words(), refresh=False)
            bar.update(done(counts) - bar.n)

        yield progress


def _lines() -> Progress:
    last = time.monotonic()

    def progress(step: str, counts: Counted) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            print(f"{step}: {counts.in_words()}", file=sys.stderr)

    return progress
