"""The results: a file, and the tables in the documentation."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BEGIN = "<!-- results: written by `make bench` -->"
END = "<!-- end of results -->"

PAGES = {
    "performance.md": ["entries", "turns", "agents", "memory", "start"],
    "feed-figures.md": ["feeds"],
    "long-term-figures.md": ["long_term"],
}
"""The parts of each page, in their order."""

Rows = list[dict[str, Any]]


def write(measured: dict[str, Rows], results: Path, docs: Path) -> None:
    """Put what was measured into ``results`` and into the pages in ``docs``; other parts stay as they are."""
    report: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {}
    when = {"date": datetime.now(UTC).date().isoformat(), "python": platform.python_version()}
    report |= {part: {**when, "results": rows} for part, rows in measured.items()}
    results.write_text(json.dumps(report, indent=2) + "\n")
    for name, parts in PAGES.items():
        page = docs / name
        page.write_text(with_tables(page.read_text(), {part: report[part] for part in parts if part in report}))


def with_tables(text: str, report: dict[str, Any]) -> str:
    """The text of a page, with the results between its two markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{_tables(report)}{END}{after}"


def _tables(report: dict[str, Any]) -> str:
    lines = []
    for part, of in report.items():
        heading, table = _TABLES[part]
        measured = f"Measured on {of['date']} with Python {of['python']}, on one noisy machine."
        lines += [f"### {heading}", "", measured, "", *table(of["results"]), ""]
    return "".join(f"{line}\n" for line in lines)


def _ratios(size: str) -> Callable[[Rows], list[str]]:
    def table(rows: Rows) -> list[str]:
        lines = [
            f"| backend | operation | callers | {size} | ours, µs | bare driver, µs | ratio | aim | at most |",
            "|---|---|--:|--:|--:|--:|--:|--:|--:|",
        ]
        for row in rows:
            shown = f"{row['ratio']:.2f}"
            if row["ratio"] > row["limit"]:
                shown = f"**{shown}**"
            lines.append(
                f"| {row['backend']} | {row['operation']} | {row['callers']} | {row['size']:,} "
                f"| {row['ours']:,.0f} | {row['bare']:,.0f} | {shown} | {row['aim']:g} | {row['limit']:g} |"
            )
        return lines

    return table


def _feeds(rows: Rows) -> list[str]:
    """What is compared with the drivers, and below it the short and the long feeds."""
    return [*_ratios("messages")([row for row in rows if "bare" in row]), *_growth("messages of the feeds", rows)]


def _growth(sizes: str, rows: Rows) -> list[str]:
    lines = ["", f"| backend | read | {sizes} | short, µs | long, µs | ratio |", "|---|---|--:|--:|--:|--:|"]
    for row in rows:
        if "sizes" in row:
            both = " and ".join(f"{size:,}" for size in row["sizes"])
            times = f"{row['short']:,.0f} | {row['long']:,.0f} | {row['ratio']:.2f}"
            lines.append(f"| {row['backend']} | {row['operation']} | {both} | {times} |")
    return lines


def _long_term(rows: Rows) -> list[str]:
    """The same of facts, and below it what vectors cost."""
    lines = _ratios("facts")([row for row in rows if "bare" in row])
    lines += _growth("facts", rows)
    lines += ["", "| backend | operation | facts | without vectors, µs | with vectors, µs |", "|---|---|--:|--:|--:|"]
    for row in rows:
        if "vectors" in row:
            vectors = "-" if row["vectors"] is None else f"{row['vectors']:,.0f}"
            times = f"{row['without']:,.0f} | {vectors}"
            lines.append(f"| {row['backend']} | {row['operation']} | {row['size']:,} | {times} |")
    return lines


def _peaks(rows: Rows) -> list[str]:
    lines = ["| backend | turns | Python's own, KiB | whole process, KiB |", "|---|--:|--:|--:|"]
    return lines + [
        f"| {row['backend']} | {row['turns']:,} | {row['python_kib']:,.0f} | {row['process_kib']:,.0f} |"
        for row in rows
    ]


def _start(rows: Rows) -> list[str]:
    lines = ["| a process that | ms from its start |", "|---|--:|"]
    return lines + [f"| {row['process']} | {row['ms']:g} |" for row in rows]


_TABLES: dict[str, tuple[str, Callable[[Rows], list[str]]]] = {
    "entries": ("Entries", _ratios("entries")),
    "turns": ("Turns of conversations", _ratios("turns")),
    "feeds": ("Messages of agents", _feeds),
    "long_term": ("Long-term memory", _long_term),
    "agents": ("Runs of agents, with a model that answers at once", _ratios("turns")),
    "memory": ("The most memory that reading a window takes", _peaks),
    "start": ("Start of a process", _start),
}
