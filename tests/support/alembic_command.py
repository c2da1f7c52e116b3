"""The command ``alembic`` as a platform team runs it, in a checkout."""

from __future__ import annotations

import os
import subprocess

from alembic.config import main

from tests.support.workers import ROOT, run_command


def alembic(url: str, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FIREFLY_")}
    given = ["-x", f"url={url}"] if url else []
    return run_command(main, [*given, *arguments], ROOT, clean | (environment or {}), warnings="default")


def done(url: str, *arguments: str, environment: dict[str, str] | None = None) -> str:
    finished = alembic(url, *arguments, environment=environment)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
