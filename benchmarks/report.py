"""The table of results in the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

BEGIN = "<!-- results: written by `make bench` -->"
END = "<!-- end of results -->"


def write_table(report: dict[str, Any], page: Path) -> None:
    """Replace the lines between the two markers of ``page``."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{table(report)}\n\n{END}{after}")


def table(report: dict[str, Any]) -> str:
    lines = [
        f"Measured on {report['date']} with Python {report['python']}. Microseconds are medians of one noisy machine;",
        "only the ratios mean anything.",
        "",
        "| backend | operation | callers | entries | ours, µs | bare driver, µs | ratio | aim | at most |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for result in report["results"]:
        shown = f"{result['ratio']:.2f}"
        if result["ratio"] > result["limit"]:
            shown = f"**{shown}**"
        lines.append(
            f"| {result['backend']} | {result['operation']} | {result['callers']} | {result['entries']:,} "
            f"| {result['ours']:,.0f} | {result['bare']:,.0f} | {shown} | {result['aim']:g} | {result['limit']:g} |"
        )
    lines += ["", "| a process that | ms from its start |", "|---|--:|"]
    lines += [f"| {name} | {milliseconds:g} |" for name, milliseconds in report["start_up_ms"].items()]
    return "\n".join(lines)
