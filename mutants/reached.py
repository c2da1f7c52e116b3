"""Which tests reach which line, and how long they take: measured once by a run of the suite."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from coverage import CoverageData

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".cache" / "mutants"
DATA, TIMES, CONFIGURATION = HOME / "coverage", HOME / "times.xml", HOME / "measured.ini"


@dataclass(frozen=True, slots=True)
class Reached:
    """For each file the tests of its lines, and the seconds of each test."""

    tests: dict[Path, dict[int, list[str]]]
    seconds: dict[str, float] = field(default_factory=dict)


def measure(tests: list[str], processes: str) -> None:
    """Run ``tests`` with a note of what each of them reaches. Failures do not matter here."""
    HOME.mkdir(parents=True, exist_ok=True)
    CONFIGURATION.write_text(f"[run]\nbranch = false\nsource_pkgs = firefly_memory\ndata_file = {DATA}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", processes, "--dist", "worksteal"]
    command += ["--cov", f"--cov-config={CONFIGURATION}", "--cov-context=test", "--cov-report="]
    subprocess.run([*command, f"--junit-xml={TIMES}", *tests], cwd=ROOT, check=False)


def reached() -> Reached:
    """What the last measurement found."""
    if not DATA.exists():
        raise SystemExit("nothing was measured yet; run: python -m mutants --measure")
    data = CoverageData(basename=str(DATA))
    data.read()
    found: dict[Path, dict[int, list[str]]] = {}
    for name in data.measured_files():
        lines: dict[int, list[str]] = defaultdict(list)
        for line, contexts in data.contexts_by_lineno(name).items():
            lines[line] = sorted({each.partition("|")[0] for each in contexts if "::" in each})
        found[Path(name).relative_to(ROOT)] = dict(lines)
    return Reached(found, _seconds())


def _seconds() -> dict[str, float]:
    """By the id of the test. JUnit has the module in place of the file."""
    times: dict[str, float] = {}
    for case in ET.parse(TIMES).getroot().iter("testcase"):
        file = str(case.get("classname")).replace(".", "/") + ".py"
        times[f"{file}::{case.get('name')}"] = float(case.get("time") or 0)
    return times
