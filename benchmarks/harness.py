"""Interleaved rounds, medians, ratios. Machines are shared and noisy: only a ratio from one run means anything."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass

Work = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Result:
    """One line of a table. Times are microseconds per operation, medians over the rounds."""

    backend: str
    operation: str
    callers: int
    size: int
    """How many entries or turns there were before."""
    ours: float
    bare: float
    aim: float
    limit: float

    @property
    def ratio(self) -> float:
        return self.ours / self.bare

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "ratio": round(self.ratio, 3)}

    def __str__(self) -> str:
        verdict = "aim" if self.ratio <= self.aim else "ok" if self.ratio <= self.limit else "MISSED"
        return (
            f"{self.backend:<18} {self.operation:<22} {self.callers:>3} callers, size {self.size:>7} "
            f"{self.ours:>10.1f} µs {self.bare:>10.1f} µs  {self.ratio:>6.2f}  "
            f"(aim {self.aim:g}, at most {self.limit:g}) {verdict}"
        )


@dataclass(frozen=True)
class Growth:
    """How long the same read takes where there is little and where there is much: microseconds, medians."""

    backend: str
    operation: str
    sizes: tuple[int, int]
    short: float
    long: float

    @property
    def ratio(self) -> float:
        return self.long / self.short

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "ratio": round(self.ratio, 3)}

    def __str__(self) -> str:
        sizes = " to ".join(f"{size:,}" for size in self.sizes)
        return (
            f"{self.backend:<18} {self.operation:<28} from {sizes}: "
            f"{self.short:>9.1f} µs to {self.long:>9.1f} µs  {self.ratio:>6.2f}"
        )


async def measure(ours: Work, bare: Work, *, operations: int, callers: int = 1, rounds: int = 9) -> tuple[float, float]:
    """Microseconds per operation of both."""
    times = await interleaved({"bare": bare, "ours": ours}, operations=operations, callers=callers, rounds=rounds)
    return times["ours"], times["bare"]


async def interleaved(
    works: Mapping[str, Work], *, operations: int, callers: int = 1, rounds: int = 9
) -> dict[str, float]:
    """Microseconds per operation of each, taking turns; the first round only warms up."""
    times: dict[str, list[float]] = {name: [] for name in works}
    order = list(works)
    for number in range(rounds + 1):
        for name in order:
            gc.collect()
            gc.disable()
            started = time.perf_counter()
            await _run(works[name], operations, callers)
            spent = time.perf_counter() - started
            gc.enable()
            if number:
                times[name].append(spent / operations * 1e6)
        order.reverse()
    return {name: statistics.median(spent) for name, spent in times.items()}


async def _run(work: Work, operations: int, callers: int) -> None:
    if callers == 1:
        for _ in range(operations):
            await work()
        return

    async def caller() -> None:
        for _ in range(operations // callers):
            await work()

    await asyncio.gather(*[caller() for _ in range(callers)])
