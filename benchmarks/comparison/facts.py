"""Facts that are put, got and listed, by LangGraph's stores beside ours, in the environment of the searches."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime

from benchmarks.comparison.report import PAGE, RESULTS, Results, write
from benchmarks.comparison.search import environment, parts, version


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison.facts", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 50_000], help="facts")
    parser.add_argument("--no-report", action="store_true", help="print only, and write no files")
    arguments = parser.parse_args()
    python = environment()
    measured: Results = {"date": datetime.now(UTC).date().isoformat(), "python": version(python)}
    for part in parts(python, "benchmarks.comparison.fact_measurements", arguments.sizes):
        print(json.dumps(part, indent=1), flush=True)
        measured |= part
    if not arguments.no_report:
        write({"facts": measured}, RESULTS, PAGE)


if __name__ == "__main__":
    main()
