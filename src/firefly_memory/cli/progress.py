"""A bar for what takes a while, where somebody watches: on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from firefly_memory.transfer.counts import Counted, Progress

Total = Callable[[str], int | None]
"""How far a step goes, if that is known; asked when the step begins, and only where somebody watches."""


def _total(counts: Counted) -> int:
    return counts.total


@contextmanager
def progress_bar(
    step: str, *, quiet: bool, total: Total, unit: str = "", done: Callable[[Counted], int] = _total
) -> Iterator[Progress | None]:
    """``None`` where nobody watches or the extra ``cli`` is not installed.

    The bar begins with ``step``, and anew where the step changes. With a total it shows the time that is left as well;
    a total that was too small is no longer shown once it is passed. ``done`` says how far the counts are.
    """
    try:
        from tqdm import tqdm
    except ImportError:
        quiet = True
    if quiet or not sys.stderr.isatty():
        yield None
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
