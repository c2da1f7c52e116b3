"""The command ``firefly-memory`` in a process of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from firefly_memory.cli import main
from tests.support.workers import run_command


def run(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """With no setting of this machine but ``variables``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FIREFLY_")}
    return run_command(main, arguments, cwd, {**inherited, **variables})
