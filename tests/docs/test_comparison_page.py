"""`docs/comparison.md` has the rows of `benchmarks/comparison/results.json`, of the versions that are pinned."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks.comparison.report import BEGIN, END, PAGE, RESULTS, tables

REPORT = json.loads(RESULTS.read_text())


def test_the_tables_of_the_page_are_those_of_the_results() -> None:
    _, _, rest = PAGE.read_text().partition(BEGIN)
    written, _, _ = rest.partition(END)
    assert written.strip() == tables(REPORT), "run make bench-comparison"


@pytest.mark.parametrize("contender", REPORT["contenders"], ids=lambda contender: contender["contender"])
def test_every_contender_has_a_row_with_its_times(contender: dict[str, str]) -> None:
    rows = [line for line in tables(REPORT).splitlines() if line.startswith(f"| {contender['name']} | ")]
    assert any(len(re.findall(r"\| [\d.,]+(?= \|)", row)) >= 5 for row in rows)


def test_the_results_are_of_the_versions_that_are_pinned() -> None:
    requirements = RESULTS.with_name("requirements.txt").read_text()
    pinned = dict(re.findall(r"^([\w-]+)(?:\[.*\])?==(.+)$", requirements, re.MULTILINE))
    measured = {each["package"]: each["version"] for each in REPORT["contenders"]}
    del measured["firefly-memory"]
    assert measured.items() <= pinned.items()
