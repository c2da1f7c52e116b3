"""The results: a file, and the tables of the page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

BEGIN = "<!-- results: written by `make bench-comparison` -->"
END = "<!-- end of results -->"
RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[2] / "docs" / "comparison.md"

Results = dict[str, Any]
_BASE = {"sqlite": "OursOnSQLite", "memory": "OursOnSQLite", "postgresql": "OursOnPostgreSQL"}
"""Whose time is 1."""
_NONE = "-"
_TIMES = ("read, 10 turns", "1,000", "10,000", "turn after 10", "after 1,000")
_BACKENDS = {"sqlite": "SQLite", "memory": "memory", "postgresql": "PostgreSQL"}


def write(measured: Results, results: Path, page: Path) -> None:
    """Put what was measured into ``results`` and between the two markers of ``page``; other parts stay as they are."""
    report: Results = json.loads(results.read_text()) if results.exists() else {}
    report |= measured
    results.write_text(json.dumps(report, indent=1) + "\n")
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{tables(report)}\n\n{END}{after}")


def tables(report: Results) -> str:
    versions = {f"{each['package']} {each['version']}" for each in report["contenders"]}
    intro = (
        f"Measured on {report['date']} with Python {report['python']}, on a busy machine with two cores: "
        f"{', '.join(sorted(versions))}."
    )
    searches = ["", *_searches(report["search"])] if "search" in report else []
    facts = ["", *_facts(report["facts"])] if "facts" in report else []
    return "\n".join([intro, "", *_times(report), "", *_processes(report), "", *_rights(report), *searches, *facts])


def _times(report: Results) -> list[str]:
    columns = [("load", 10), ("load", 1_000), ("load", 10_000), ("turn", 10), ("turn", 1_000)]
    spent = {(row["contender"], row["operation"], row["turns"]): row["us"] for row in report["times"]}
    sizes = {row["contender"]: row for row in report["sizes"]}
    lines = [
        _row(["store", "database", "a run reads", *_TIMES, "100 turns, KiB", "one more after 1,000, KiB"]),
        "|---|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for each in report["contenders"]:
        name = each["contender"]
        ratios = [_ratio(spent[name, *column] / spent[_BASE[each["backend"]], *column]) for column in columns]
        stored = sizes.get(name)
        kib = [
            f"{stored[of] / 1024:,.1f}" if stored else _NONE for of in ("bytes_of_100", "bytes_of_one_more_after_1000")
        ]
        lines.append(_row([each["name"], _BACKENDS[each["backend"]], each["reads"], *ratios, *kib]))
    return lines


def _processes(report: Results) -> list[str]:
    concurrent = {row["contender"]: row for row in report["concurrent"]}
    killed = {row["contender"]: row for row in report["killed"]}
    lines = [
        _row(["store", "database", "lost of 800", "errors", "complete turns", "of the killed run", "it can go on"]),
        "|---|---|--:|--:|--:|---|---|",
    ]
    for each in report["contenders"]:
        name = each["contender"]
        if name not in concurrent:
            lines.append(_row([each["name"], _BACKENDS[each["backend"]], _NONE, _NONE, "0", "nothing", "no"]))
            continue
        of_the_run = ", ".join(killed[name]["of_the_run"]) or "nothing"
        counts = [concurrent[name]["lost"], concurrent[name]["errors"], killed[name]["complete_turns"]]
        goes_on = "yes" if killed[name]["resumes"] else "no"
        lines.append(_row([each["name"], _BACKENDS[each["backend"]], *map(str, counts), of_the_run, goes_on]))
    return lines


def _rights(report: Results) -> list[str]:
    names = {each["contender"]: each["name"] for each in report["contenders"]}
    lines = [
        "| store on PostgreSQL, by a role that may only read and write rows | opened | opened, and asked to set up |",
        "|---|---|---|",
    ]
    return lines + [
        _row([names[row["contender"]], row["without_setup"], row["with_setup"]]) for row in report["rights"]
    ]


def _searches(report: Results) -> list[str]:
    """What `benchmarks.comparison.search` has measured."""
    versions = {f"{each['package']} {each['version']}" for each in report["contenders"]}
    sizes = list(dict.fromkeys(row["size"] for row in report["times"]))
    spent = {(row["contender"], row["operation"], row["size"]): row["ms"] for row in report["times"]}
    puts = {row["contender"]: row["ms"] for row in report["puts"]}
    quality = {row["contender"]: row for row in report["quality"]}
    questions = report["quality"][0]["questions"]
    measured = f"Searches, measured on {report['date']} with Python {report['python']}: {', '.join(sorted(versions))}."
    columns = ["store", "database", "compares", *(f"search of {size:,}" for size in sizes), "add one"]
    columns += [f"fill with {sizes[-1]:,}, each", "recall@10", "MRR", "recall@10, all in one"]
    lines = [
        f"{measured} Times are milliseconds; recall@10 and MRR are in percent, of {questions} questions.",
        "",
        _row(columns),
        "|---|---|---" + "|--:" * (len(columns) - 3) + "|",
    ]
    for each in report["contenders"]:
        name = each["contender"]
        head = [each["name"], _BACKENDS[each["backend"]], each["compares"]]
        if each["cannot_run"]:
            lines.append(_row([*head, f"cannot run here: {each['cannot_run']}", *[_NONE] * (len(sizes) + 4)]))
            continue
        times = [_ratio(spent[name, "search", size]) for size in sizes]
        found = [f"{quality[name][of]:.1f}" for of in ("recall_10", "mrr", "recall_10_together")]
        lines.append(_row([*head, *times, f"{puts[name]:.2f}", f"{spent[name, 'fill', sizes[-1]]:.2f}", *found]))
    return lines


def _facts(report: Results) -> list[str]:
    """What `benchmarks.comparison.facts` has measured."""
    versions = {f"{each['package']} {each['version']}" for each in report["contenders"]}
    spent = {(row["contender"], row["operation"], row["size"]): row["us"] for row in report["times"]}
    columns = list(dict.fromkeys((row["operation"], row["size"]) for row in report["times"]))
    measured = f"Facts, measured on {report['date']} with Python {report['python']}: {', '.join(sorted(versions))}."
    lines = [
        f"{measured} Times are microseconds.",
        "",
        _row(["store", "database", *(f"{operation}, {size:,}" for operation, size in columns)]),
        "|---|---" + "|--:" * len(columns) + "|",
    ]
    for each in report["contenders"]:
        times = [f"{spent[each['contender'], *column]:,.0f}" for column in columns]
        lines.append(_row([each["name"], _BACKENDS[each["backend"]], *times]))
    return lines


def _ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
