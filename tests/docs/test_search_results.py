"""`docs/search-figures.md` has the figures of `benchmarks/search.json`, and the report finds its place in a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.search_report import BEGIN, END, PAGE, RESULTS, Cost, Row, tables, write


def test_the_tables_of_the_search_are_those_of_the_results() -> None:
    _, _, rest = PAGE.read_text().partition(BEGIN)
    written, _, _ = rest.partition(END)
    assert written.strip() == tables(json.loads(RESULTS.read_text())), "run make bench-search"


def test_what_is_measured_again_replaces_the_figures_of_its_backend_only(tmp_path: Path) -> None:
    page, results = tmp_path / "page.md", tmp_path / "search.json"
    page.write_text(f"Before.\n\n{BEGIN}\n{END}\n\nAfter.\n")

    def measured(backend: str, milliseconds: float) -> None:
        write({"questions": {backend: [Row(backend, "text", 700, milliseconds, 10.0).as_dict()]}}, results, page)

    measured("sqlite", 4.5)
    measured("mongodb", 30)
    write({"writes": {"sqlite": [_cost(1, ours=1.4), _cost(1, ours=1.6), _cost(1_000, ours=21)]}}, results, page)
    measured("sqlite", 12)
    text = page.read_text()
    assert text.startswith(f"Before.\n\n{BEGIN}\n\nMeasured on ")
    assert text.endswith(f"\n\n{END}\n\nAfter.\n")
    assert [line for line in text.splitlines() if line.startswith("| ")] == [
        "|  | chunks | SQLite | MongoDB | at most |",
        "| text | 700 | **12.0** | **30.0** | 10 |",
        "| backend | chunks | vectors | with the index, ms | without, ms | ratio | bare driver, ms | ratio |",
        "| SQLite | 1 | no | 1.40 | 1.00 | 1.40 | 2.00 | 0.70 |",
        "| SQLite | 1 | no | 1.60 | 1.00 | **1.60** | 2.00 | 0.80 |",
        "| SQLite | 1,000 | no | 21.00 | 1.00 | 21.00 | 2.00 | **10.50** |",
    ]


def _cost(chunks: int, ours: float) -> dict[str, Any]:
    return Cost("sqlite", chunks, vectors=False, ours=ours, without_index=1.0, bare=2.0).as_dict()
