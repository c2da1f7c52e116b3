"""Builds the site in ``.cache/site``, in an environment of its own, and checks it: ``python -m website``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from website.checks import problems
from website.paths import ROOT
from website.reference import documented_names

ENVIRONMENT = ROOT / ".cache" / "docs"
SITE = ROOT / ".cache" / "site"


def main() -> int:
    built = _run(str(_python()), "-m", "mkdocs", "build", "--strict", "--clean")
    if built:
        print("The site was not built: mend what is reported above", file=sys.stderr)
        return built
    found = problems(SITE, set(documented_names().values()))
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        pages = len(list(SITE.rglob("*.html")))
        where = SITE.relative_to(ROOT)
        print(f"{pages} pages; to read and search them: python3 -m http.server --bind 127.0.0.1 --directory {where}")
    return 1 if found else 0


def _python() -> Path:
    """The Python of the environment, with what the group ``docs`` of pyproject.toml needs."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run(["uv", "venv", "--quiet", "--clear", "--python", sys.executable, ENVIRONMENT], check=True)
    install = ["uv", "pip", "install", "--quiet", "--python", str(python), "--group", "docs"]
    subprocess.run([*install, "--constraint", "constraints.txt"], cwd=ROOT, check=True)
    return python


def _run(*command: str) -> int:
    # The library is read where it is, and not installed. The theme would announce its end (decision 0047).
    variables = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode


if __name__ == "__main__":
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where uv is
    sys.exit(main())
