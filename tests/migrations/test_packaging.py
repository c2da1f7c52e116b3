"""The migrations in an installed package and in a checkout. The environment ``package`` has those in the wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.workers import ROOT


@pytest.mark.parametrize("autogenerate", [[], ["--autogenerate"]], ids=["plain", "autogenerate"])
def test_no_revision_is_written_into_the_installed_package(autogenerate: list[str], tmp_path: Path) -> None:
    """Every store would refuse to start: two revisions would be the newest."""
    package = shutil.copytree(ROOT / "src" / "firefly_memory", tmp_path / "site" / "firefly_memory")
    shutil.copytree(ROOT / "migrations", package / "migrations")  # as the wheel has it
    (tmp_path / "alembic.ini").write_text("[alembic]\nscript_location = firefly_memory:migrations\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FIREFLY_")}
    environment = {**clean, "PYTHONPATH": str(tmp_path / "site"), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "alembic", "-x", f"url=sqlite:///{tmp_path}/memory.db", *arguments]
        return subprocess.run(command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert run("upgrade", "head").returncode == 0
    before = sorted(package.rglob("*"))
    refused = run("revision", "-m", "mine", *autogenerate)
    assert refused.returncode != 0
    assert "alembic init" in " ".join((refused.stdout + refused.stderr).split())
    assert "Traceback" not in refused.stderr
    assert sorted(package.rglob("*")) == before


def test_a_checkout_can_write_new_revisions(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "src", checkout / "src")
    versions = shutil.copytree(ROOT / "migrations", checkout / "migrations") / "versions"
    shutil.copy(ROOT / "alembic.ini", checkout)
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "alembic", "revision", "-m", "ours"]
    subprocess.run(command, check=True, cwd=checkout, env=environment, capture_output=True)
    assert len(list(versions.glob("*_ours.py"))) == 1
