"""A package of somebody else with a facet, and commands in processes of their own that may know of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from alembic.config import main as alembic

from firefly_memory.cli import main
from tests.support.documentation import ROOT
from tests.support.workers import Main, run_command

NAME = "notes_package.facet:FACET"
VARIABLE = "FIREFLY_AGENTIC_MEMORY_FACETS"

_FACET = '''"""What an operator names."""

from pathlib import Path

from tests.toy_facet.facet import toys

(FACET,) = toys(Path(__file__).with_name("revisions"))
(ANOTHER,) = toys(Path(__file__).with_name("revisions"))
ALIAS = FACET
TEXT = "no facet"
'''


def write_package(directory: Path) -> Path:
    """The package, in a directory that only ``PYTHONPATH`` names."""
    package = directory / "site" / "notes_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "facet.py").write_text(_FACET)
    (package / "broken.py").write_text("raise RuntimeError('the licence has expired')")
    return package


def environment(package: Path, **variables: str) -> dict[str, str]:
    """No variable of this library is set but these."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FIREFLY_")}
    return clean | {"PYTHONPATH": f"{package.parent}{os.pathsep}{ROOT}", **variables}


def run(arguments: list[str], variables: dict[str, str], directory: Path) -> subprocess.CompletedProcess[str]:
    """``firefly-memory``, ``python -c``, or ``alembic`` with the ``alembic.ini`` of the checkout, with these variables."""
    command, *rest = arguments
    programs: dict[str, Main] = {"firefly-memory": main, "alembic": _alembic, "python": _python}
    return run_command(programs[command], rest, directory, variables, warnings="default")


def _alembic(arguments: list[str]) -> None:
    alembic(["-c", str(ROOT / "alembic.ini"), *arguments])


def _python(arguments: list[str]) -> None:
    _, code, *rest = arguments
    sys.argv = ["-c", *rest]
    exec(compile(code, "-c", "exec"), {"__name__": "__main__"})
