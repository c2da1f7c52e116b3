"""How much memory work takes at its peak, measured in a process that does nothing else."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from multiprocessing import get_context
from pathlib import Path

Work = Callable[[], object]
Prepare = Callable[[int, Path], AbstractContextManager[Sequence[Work]]]
"""Makes a place for a number of items in a new directory; what is measured comes after that."""


def assert_more_takes_no_more_memory(prepare: Prepare, directory: Path, few: int, many: int) -> None:
    """In the process of the tests, others are at work: threads of drivers, coverage, what Python loads at first use.

    So the work is done in a process of its own, and once before it is measured.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        _, less, more = process.submit(_peaks, prepare, directory, (few, few, many)).result()
    for peak_of_few, peak_of_many in zip(less, more, strict=True):
        assert peak_of_many < peak_of_few * 1.5


def _peaks(prepare: Prepare, directory: Path, sizes: Sequence[int]) -> list[list[int]]:
    found = []
    for number, size in enumerate(sizes):
        place = directory / f"{number}"
        place.mkdir()
        with prepare(size, place) as works:
            found.append([_peak(work) for work in works])
    return found


def _peak(work: Work) -> int:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak
