"""Make an environment with the contenders, measure in it, write the results and the tables of the page."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.comparison.report import PAGE, RESULTS, Results, write
from tests.support import servers

ROOT = Path(__file__).parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
ENVIRONMENT = ROOT / ".cache" / "comparison"
PARTS = ("times", "sizes", "concurrent", "killed", "rights")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    parser.add_argument("--what", nargs="*", choices=PARTS, default=PARTS, help="the parts to run")
    parser.add_argument("--no-report", action="store_true", help="print only, and write no files")
    arguments = parser.parse_args()
    python = environment()
    measured: Results = {}
    for part in parts(python, arguments.what):
        print(json.dumps(part, indent=1), flush=True)
        measured |= part
    if not arguments.no_report:
        when = {"date": datetime.now(UTC).date().isoformat(), "python": platform.python_version()}
        write({**when, **measured}, RESULTS, PAGE)


def environment() -> Path:
    """The contenders in an environment of their own, made by uv; the path of its Python."""
    uv = str(Path(sys.executable).with_name("uv"))
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(ENVIRONMENT)], check=True)
    ours = ["--reinstall-package", "firefly-memory", f"firefly-memory[agents,postgres] @ {ROOT.as_uri()}"]
    install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python)]
    subprocess.run([*install, "--requirement", str(REQUIREMENTS), *ours], check=True)
    return python


def parts(python: Path, names: list[str]) -> Iterator[Results]:
    with servers.postgresql(durable=True) as url, tempfile.TemporaryDirectory() as directory:
        command = [str(python), "-W", "ignore", "-m", "benchmarks.comparison.measurements", directory, url, *names]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            yield from map(json.loads, process.stdout)
        assert process.returncode == 0, "the measurements failed"


if __name__ == "__main__":
    main()
