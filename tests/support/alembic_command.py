"""The command ``alembic`` as a platform team runs it, in a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def alembic(url: str, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FIREFLY_")}
    given = ["-x", f"url={url}"] if url else []
    command = [sys.executable, "-m", "alembic", *given, *arguments]
    return subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, env=clean | (environment or {})
    )


def done(url: str, *arguments: str, environment: dict[str, str] | None = None) -> str:
    finished = alembic(url, *arguments, environment=environment)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout
