"""A facet of another package in a database that an application's own Alembic looks at, or migrates."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import copytree

import pytest

from firefly_memory.schema import HEAD
from tests.support.documentation import ROOT
from tests.support.facet_package import NAME, VARIABLE, environment, run, write_package
from tests.support.host_project import PROJECT, alembic, done

_BRANCH = f"""
from firefly_memory.alembic import steps_of
from firefly_memory.facets import register
from notes_package.facet import FACET

register(FACET)

revision = "firefly_toy_1"
down_revision = "firefly_{HEAD}"
branch_labels = None
depends_on = None

upgrade, downgrade = steps_of("toy_1")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = write_package(tmp_path)
    (package / "alembic_branch").mkdir()
    (package / "alembic_branch" / "firefly_toy_1.py").write_text(_BRANCH)
    monkeypatch.setenv("PYTHONPATH", f"{package.parent}{os.pathsep}{ROOT}")
    return package


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copytree(PROJECT, tmp_path / "project")


def test_its_autogenerate_leaves_the_tables_of_a_named_facet_alone(
    package: Path, project: Path, sqlite: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    upgraded = run(
        ["firefly-memory", "db", "upgrade", "--url", sqlite], environment(package, **{VARIABLE: NAME}), tmp_path
    )
    assert "toy_1" in upgraded.stdout
    done(project, sqlite, "upgrade", "head")
    assert "toy_1_notes" in alembic(project, sqlite, "check").stdout, "or the next line would show nothing"
    monkeypatch.setenv(VARIABLE, NAME)
    done(project, sqlite, "check")


def test_one_upgrade_brings_the_facet_as_well(package: Path, project: Path, url: str, tmp_path: Path) -> None:
    ini = project / "alembic.ini"
    ini.write_text(
        ini.read_text().replace(
            "firefly_memory:alembic_branch", f"firefly_memory:alembic_branch {package}/alembic_branch"
        )
    )
    done(project, url, "-n", "both", "upgrade", "heads")
    assert "firefly_toy_1" in done(project, url, "-n", "both", "current")
    done(project, url, "-n", "both", "check")
    checked = run(["firefly-memory", "db", "check", "--url", url], environment(package, **{VARIABLE: NAME}), tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done(project, url, "-n", "both", "downgrade", f"firefly_memory@firefly_{HEAD}")
    alone = run(["firefly-memory", "db", "check", "--url", url], environment(package), tmp_path)
    assert alone.returncode == 0, alone.stdout + alone.stderr
