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

Rows = list[dict[str, Any]]


def write(measured: dict[str, Rows], results: Path, page: Path) -> None:
    """Put what was measured into ``results`` and between the two markers of ``page``; other parts stay as they are."""
    report: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {}
    when = {"date": datetime.now(UTC).date().isoformat(), "python": platform.python_version()}
    report |= {part: {**when, "results": rows} for part, rows in measured.items()}
    results.write_text(json.dumps(report, indent=2) + "\n")
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{tables(report)}\n\n{END}{after}")


def tables(report: dict[str, Any]) -> str:
    lines = []
    for part, (heading, table) in _TABLES.items():
        if part in report:
            of = report[part]
            measured = f"Measured on {of['date']} with Python {of['python']}, on one noisy machine."
            lines += [f"### {heading}", "", measured, "", *table(of["results"]), ""]
    return "\n".join(lines).rstrip()


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
    "agents": ("Runs of agents, with a model that answers at once", _ratios("turns")),
    "memory": ("The most memory that reading a window takes", _peaks),
    "start": ("Start of a process", _start),
}
