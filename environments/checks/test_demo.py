"""``make demo`` in a fresh copy of the repository, where nothing is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
MADE = shutil.ignore_patterns(".venv", ".cache", ".git", ".*_cache", ".hypothesis", "__pycache__")


def test_the_demonstration_runs_in_a_fresh_copy_within_seconds_of_its_installation(tmp_path: Path) -> None:
    copy = shutil.copytree(ROOT, tmp_path / "copy", ignore=MADE)
    path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if ".venv" not in part)
    command = ["make", "demo", f"PYTHON={sys.executable}"]
    seconds = []
    for said_at_first in ("Installing into .cache/demo/venv, which takes", ""):
        started = time.monotonic()
        done = subprocess.run(command, cwd=copy, env={**os.environ, "PATH": path}, capture_output=True, check=False)
        seconds.append(time.monotonic() - started)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr.decode().startswith(said_at_first)
        assert "kill -9" in done.stdout.decode()
        assert "together 359.60 EUR, on the train NJ 467." in done.stdout.decode()
    assert not done.stderr
    assert seconds[1] < 20, "it takes ten seconds on a machine that does nothing else"
    assert not (copy / ".venv").exists()
