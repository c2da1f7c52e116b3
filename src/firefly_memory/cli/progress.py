"""A bar for what takes a while, where somebody watches: on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Show(Protocol):
    """Moves the bar. Where ``step`` is another one than before, it begins again."""

    def __call__(self, done: int, words: str, step: str | None = None) -> None: ...


Total = Callable[[str], int | None]
"""How far a step goes, if that is known; asked when the step begins, and only where somebody watches."""


def unknown(_: str) -> None:
    """For a bar that is a counter."""


@contextmanager
def progress_bar(what: str, *, quiet: bool, total: Total = unknown, unit: str = "") -> Iterator[Show | None]:
    """``None`` where nobody watches or the extra ``cli`` is not installed.

    With a total it shows the time that is left as well; one that was too small is no longer shown once it is passed.
    """
    try:
        from tqdm import tqdm
    except ImportError:
        quiet = True
    if quiet or not sys.stderr.isatty():
        yield None
        return
    now = what
    with tqdm(
        desc=what, total=total(what), unit=unit, unit_scale=bool(unit), file=sys.stderr, dynamic_ncols=True, leave=False
    ) as bar:

        def show(done: int, words: str, step: str | None = None) -> None:
            nonlocal now
            if step is not None and step != now:
                now = step
                bar.set_description(step, refresh=False)
                bar.reset(total(step))
            bar.set_postfix_str(words, refresh=False)
            bar.update(done - bar.n)

        yield show
