"""How much memory work takes at its peak, and how much it keeps, measured in a process that does nothing else."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.workers import one_process

Work = Callable[[], object]
Prepare = Callable[[int, Path], AbstractContextManager[Sequence[Work]]]
"""Makes a place for a number of items in a new directory; what is measured comes after that."""


def assert_more_takes_no_more_memory(prepare: Prepare, directory: Path, few: int, many: int) -> None:
    """In the process of the tests, others are at work: threads of drivers, coverage, what Python loads at first use.

    So the work is done in a process of its own, and once before it is measured.
    """
    with one_process() as process:
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


def kept_by_each(prepare: Prepare, directory: Path, size: int) -> list[int]:
    """How many bytes are still in use after each piece of work.

    It has been done once before, and is done twice: Python's own tables grow now and then, drivers' as well.
    """
    with one_process() as process:
        return process.submit(_kept, prepare, directory, size).result()


def _kept(prepare: Prepare, directory: Path, size: int) -> list[int]:
    with prepare(size, directory) as works:
        kept = []
        for work in works:
            work()
            kept.append(min(_kept_by(work), _kept_by(work)))
        return kept


def _kept_by(work: Work) -> int:
    gc.collect()
    tracemalloc.start()
    work()
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return kept
