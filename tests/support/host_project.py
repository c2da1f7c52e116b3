"""The sample application that has Alembic of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.documentation import ROOT

PROJECT = ROOT / "tests" / "migrations" / "host_project"


def alembic(project: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    sqlalchemy_url = url.replace("postgresql://", "postgresql+psycopg://")
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "alembic", *arguments],
        cwd=project,
        env=os.environ | {"APPLICATION_URL": sqlalchemy_url},
        capture_output=True,
        text=True,
        check=False,
    )


def done(project: Path, url: str, *arguments: str) -> str:
    finished = alembic(project, url, *arguments)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
