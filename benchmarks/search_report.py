"""The results of the benchmarks of the search: a file, and the tables in the documentation."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

BEGIN = "<!-- results of the search: written by `make bench-search` -->"
END = "<!-- end of the results of the search -->"
RESULTS = Path(__file__).with_name("search.json")
PAGE = Path(__file__).parents[1] / "docs" / "search-figures.md"

Rows = list[dict[str, Any]]
Report = dict[str, dict[str, Rows]]
"""By part and by backend."""

_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mongodb": "MongoDB"}
_ONE, _MANY = 1.5, 10.0


class Row(NamedTuple):
    """How long a question takes, or an added chunk."""

    backend: str
    what: str
    chunks: int
    milliseconds: float
    limit: float | None

    def __str__(self) -> str:
        verdict = "" if self.limit is None else "ok" if self.milliseconds <= self.limit else "MISSED"
        limit = "" if self.limit is None else f"at most {self.limit:g}"
        what = f"{self.what} ({self.chunks:,})"
        return f"{self.backend:<12}{what:<60}{self.milliseconds:>9.2f} ms  {limit} {verdict}"

    def as_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "milliseconds": round(self.milliseconds, 3)}


class Cost(NamedTuple):
    """Milliseconds of an ``add()``."""

    backend: str
    chunks: int
    vectors: bool
    ours: float
    without_index: float
    """Without the objects of the search, and without vectors."""
    bare: float

    @property
    def ratio(self) -> float:
        return self.ours / self.without_index

    @property
    def to_bare(self) -> float:
        return self.ours / self.bare

    @property
    def is_ok(self) -> bool:
        """One chunk is held against one without the index, many against the driver: all that the library costs."""
        return self.ratio <= _ONE if self.chunks == 1 else self.to_bare <= _MANY

    def __str__(self) -> str:
        what = f"add {self.chunks:,} with{'' if self.vectors else 'out'} vectors"
        limit = f"to no index at most {_ONE:g}" if self.chunks == 1 else f"to the driver at most {_MANY:g}"
        without = f"no index {self.without_index:>9.2f} ms {self.ratio:>6.2f}"
        return (
            f"{self.backend:<12}{what:<28}{self.ours:>9.2f} ms   {without}"
            f"   driver {self.bare:>8.2f} ms {self.to_bare:>6.2f}   ({limit}) {'ok' if self.is_ok else 'MISSED'}"
        )

    def as_dict(self) -> dict[str, Any]:
        rounded = {name: round(getattr(self, name), 3) for name in ("ours", "without_index", "bare")}
        return {**self._asdict(), **rounded}


def write(measured: Mapping[str, Mapping[str, Rows]], results: Path, page: Path) -> None:
    """Put what was measured into ``results`` and between the two markers of ``page``; all else stays as it is."""
    report: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {"parts": {}}
    report |= {"date": datetime.now(UTC).date().isoformat(), "python": platform.python_version()}
    for part, rows in measured.items():
        report["parts"][part] = {**report["parts"].get(part, {}), **rows}
    results.write_text(json.dumps(report, indent=1) + "\n")
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{tables(report)}\n\n{END}{after}")


def tables(report: Mapping[str, Any]) -> str:
    parts: Report = report["parts"]
    if not parts:
        return "Not measured yet."
    measured = f"Measured on {report['date']} with Python {report['python']}, on one noisy machine with two cores."
    return "\n".join([measured, *(line for part in _TABLES if part in parts for line in _TABLES[part](parts[part]))])


def _questions(by_backend: Mapping[str, Rows]) -> list[str]:
    """A line for each question, a column for each backend. Above its limit a figure is bold."""
    backends = [each for each in _NAMES if each in by_backend]
    cells = {(row["what"], row["chunks"], backend): row for backend in backends for row in by_backend[backend]}
    lines = [
        _line(["", "chunks", *map(_NAMES.__getitem__, backends), "at most"]),
        "|---|--:" + "|--:" * len(backends) + "|--:|",
    ]
    for what, chunks in dict.fromkeys((what, chunks) for what, chunks, _ in cells):
        rows = [cells.get((what, chunks, backend)) for backend in backends]
        limits = dict.fromkeys(f"{row['limit']:g}" for row in rows if row is not None and row["limit"] is not None)
        lines.append(_line([what, f"{chunks:,}", *map(_milliseconds, rows), " / ".join(limits)]))
    return ["", "Milliseconds of a question, and of a chunk among many that are added:", "", *lines]


def _milliseconds(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "-"
    shown = f"{row['milliseconds']:,.1f}"
    return shown if row["limit"] is None or row["milliseconds"] <= row["limit"] else f"**{shown}**"


def _writes(by_backend: Mapping[str, Rows]) -> list[str]:
    lines = [
        "| backend | chunks | vectors | with the index, ms | without, ms | ratio | bare driver, ms | ratio |",
        "|---|--:|---|--:|--:|--:|--:|--:|",
    ]
    for backend, title in _NAMES.items():
        for cost in (Cost(**row) for row in by_backend.get(backend, ())):
            one, many = f"{cost.ratio:.2f}", f"{cost.to_bare:.2f}"
            if not cost.is_ok:
                one, many = (f"**{one}**", many) if cost.chunks == 1 else (one, f"**{many}**")
            vectors = "yes" if cost.vectors else "no"
            times = [f"{each:,.2f}" for each in (cost.ours, cost.without_index)]
            lines.append(_line([title, f"{cost.chunks:,}", vectors, *times, one, f"{cost.bare:,.2f}", many]))
    return ["", "An `add()` of chunks of 60 words:", "", *lines]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


_TABLES: dict[str, Callable[[Mapping[str, Rows]], list[str]]] = {"questions": _questions, "writes": _writes}
