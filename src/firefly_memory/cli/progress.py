"""A bar for what takes a while, where somebody watches: on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Show = Callable[[int, str], None]


@contextmanager
def progress_bar(what: str, *, quiet: bool, total: int | None = None) -> Iterator[Show | None]:
    """``show(done, words)`` moves the bar; ``None`` where nobody watches or the extra ``cli`` is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        quiet = True
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with tqdm(desc=what, total=total, unit="", file=sys.stderr, dynamic_ncols=True, leave=False) as bar:

        def show(done: int, words: str) -> None:
            bar.set_postfix_str(words, refresh=False)
            bar.update(done - bar.n)

        yield show
