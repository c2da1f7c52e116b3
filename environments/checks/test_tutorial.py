"""The tutorial in an environment that has only what its first step installs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import tutorial


def test_the_tutorial_runs_as_its_reader_types_it(tmp_path: Path) -> None:
    tutorial.walk_through(os.environ["FIREFLY_TEST_POSTGRES_URL"], tmp_path)


def test_a_type_checker_finds_no_fault_in_the_files_of_the_tutorial() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "models.py", "service.py"]
    done = subprocess.run(command, cwd=tutorial.EXAMPLE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
