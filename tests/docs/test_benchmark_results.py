"""The pages have the figures of `benchmarks/results.json`, and the report finds its place in each of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import PARTS
from benchmarks.report import BEGIN, END, PAGES, Rows, with_tables, write
from tests.support.documentation import ROOT

RESULTS = json.loads((ROOT / "benchmarks" / "results.json").read_text())


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_figures_of_the_results(name: str) -> None:
    text = (ROOT / "docs" / name).read_text()
    report = {part: RESULTS[part] for part in PAGES[name] if part in RESULTS}
    assert text == with_tables(text, report), "run make bench"


def test_each_part_of_the_benchmarks_is_on_one_page() -> None:
    assert sorted(part for parts in PAGES.values() for part in parts) == sorted(PARTS)


def test_feeds_are_compared_with_the_driver_and_then_with_themselves(tmp_path: Path) -> None:
    for name in PAGES:
        (tmp_path / name).write_text(f"Before.\n\n{BEGIN}\nOld.\n{END}\n\nAfter.\n")
    compared = {"backend": "sqlite sync", "operation": "append", "callers": 1, "size": 100_000}
    ratio = {"ours": 300.0, "bare": 100.0, "aim": 1.2, "limit": 1.5, "ratio": 3.0}
    growth = {"backend": "sqlite sync", "operation": "3 of an agent", "sizes": [10, 100_000]}
    times = {"short": 30.0, "long": 33.0, "ratio": 1.1}
    write({"feeds": [compared | ratio, growth | times]}, tmp_path / "results.json", tmp_path)
    text = (tmp_path / "feed-figures.md").read_text()
    assert text.startswith(f"Before.\n\n{BEGIN}\n\n### Messages of agents\n\nMeasured on ")
    assert text.endswith(f"\n\n{END}\n\nAfter.\n")
    assert [line for line in text.splitlines() if line.startswith("| sqlite")] == [
        "| sqlite sync | append | 1 | 100,000 | 300 | 100 | **3.00** | 1.2 | 1.5 |",
        "| sqlite sync | 3 of an agent | 10 and 100,000 | 30 | 33 | 1.10 |",
    ]
    assert "Old." not in (tmp_path / "performance.md").read_text()


def test_long_term_memory_is_compared_with_the_driver_and_with_itself_and_with_vectors(tmp_path: Path) -> None:
    for name in PAGES:
        (tmp_path / name).write_text(f"{BEGIN}\n{END}\n")
    compared = {"backend": "mongodb async", "operation": "find_fact", "callers": 1, "size": 1_000}
    ratio = {"ours": 300.0, "bare": 250.0, "aim": 1.2, "limit": 1.5, "ratio": 1.2}
    growth = {"backend": "mongodb async", "operation": "find_fact", "sizes": [1_000, 200_000]}
    times = {"short": 30.0, "long": 33.0, "ratio": 1.1}
    best = {"backend": "mongodb", "operation": "search", "size": 1_000, "without": 2_000.0}
    rows: Rows = [compared | ratio, growth | times, best | {"vectors": 3_000.0}, best | {"vectors": None}]
    write({"long_term": rows}, tmp_path / "results.json", tmp_path)
    text = (tmp_path / "long-term-figures.md").read_text()
    assert [line for line in text.splitlines() if line.startswith("| mongodb")] == [
        "| mongodb async | find_fact | 1 | 1,000 | 300 | 250 | 1.20 | 1.2 | 1.5 |",
        "| mongodb async | find_fact | 1,000 and 200,000 | 30 | 33 | 1.10 |",
        "| mongodb | search | 1,000 | 2,000 | 3,000 |",
        "| mongodb | search | 1,000 | 2,000 | - |",
    ]
