"""The sample application that has Alembic of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from alembic.config import main

from tests.support.workers import ROOT, run_command

PROJECT = ROOT / "tests" / "migrations" / "host_project"


def alembic(project: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    sqlalchemy_url = url.replace("postgresql://", "postgresql+psycopg://")
    return run_command(main, arguments, project, os.environ | {"APPLICATION_URL": sqlalchemy_url})


def done(project: Path, url: str, *arguments: str) -> str:
    finished = alembic(project, url, *arguments)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
