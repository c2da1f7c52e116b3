"""Searches by meaning, LangGraph's beside ours: make an environment, measure in it, write results and tables."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.comparison.__main__ import ROOT
from benchmarks.comparison.report import PAGE, RESULTS, Results, write
from tests.support import servers

REQUIREMENTS = Path(__file__).with_name("search-requirements.txt")
ENVIRONMENT = ROOT / ".cache" / "comparison-search"
_LOADS_EXTENSIONS = """import sqlite3, sys
sys.exit(sys.version_info < (3, 11) or not hasattr(sqlite3.Connection, "enable_load_extension"))"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison.search", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[700, 50_000], help="documents")
    parser.add_argument("--no-report", action="store_true", help="print only, and write no files")
    arguments = parser.parse_args()
    python = environment()
    measured: Results = {"date": datetime.now(UTC).date().isoformat(), "python": version(python)}
    for part in parts(python, "benchmarks.comparison.search_measurements", arguments.sizes):
        print(json.dumps(part, indent=1), flush=True)
        measured |= part
    if not arguments.no_report:
        write({"search": measured}, RESULTS, PAGE)


def environment() -> Path:
    """The contenders in an environment of their own, made by uv; the path of its Python.

    LangGraph's store on SQLite loads an extension, so it is a Python that can do this, if there is one.
    """
    uv = str(Path(sys.executable).with_name("uv"))
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([uv, "venv", "--quiet", "--python", _interpreter(), str(ENVIRONMENT)], check=True)
    ours = ["--reinstall-package", "firefly-memory", f"firefly-memory[embeddings,postgres] @ {ROOT.as_uri()}"]
    install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python)]
    subprocess.run([*install, "--requirement", str(REQUIREMENTS), *ours], check=True)
    return python


def _interpreter() -> str:
    of_system = shutil.which("python3", path=os.defpath)
    able = [each for each in (sys.executable, of_system) if each and _succeeds(each, _LOADS_EXTENSIONS)]
    return able[0] if able else sys.executable


def _succeeds(python: str, program: str) -> bool:
    return subprocess.run([python, "-c", program], check=False, capture_output=True).returncode == 0


def version(python: Path) -> str:
    program = "import platform; print(platform.python_version())"
    return subprocess.run([str(python), "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def parts(python: Path, module: str, sizes: list[int]) -> Iterator[Results]:
    """What a module of the environment measures, with a server and a directory of its own."""
    with servers.postgresql(durable=True) as url, tempfile.TemporaryDirectory() as directory:
        command = [str(python), "-W", "ignore", "-m", module, directory, url, *map(str, sorted(sizes))]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            yield from map(json.loads, process.stdout)
        assert process.returncode == 0, "the measurements failed"


if __name__ == "__main__":
    main()
