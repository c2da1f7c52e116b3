"""The examples in ``docs/deployment.md`` are well-formed, and their commands work."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from firefly_memory import connect
from tests.support import command_line
from tests.support.backends import Place
from tests.support.databases import empty_postgresql
from tests.support.documentation import ROOT, blocks

pytestmark = pytest.mark.thorough

PIECES = {
    block.line: yaml.safe_load(block.text)
    for block in blocks(ROOT / "docs" / "deployment.md")
    if block.language == "yaml"
}


def containers(piece: Any) -> Iterator[Any]:
    spec = piece["spec"]
    pod = spec.get("jobTemplate", {}).get("spec", spec)["template"]["spec"]
    yield from pod.get("initContainers", [])
    yield from pod["containers"]


def commands(piece: Any) -> list[list[str]]:
    """Every command of ours that the piece runs."""
    if "services" in piece:
        found = [service["command"] for service in piece["services"].values() if "command" in service]
    elif "spec" in piece:
        found = [container["command"] for container in containers(piece) if "command" in container]
    elif "jobs" in piece:
        steps = [step["run"] for job in piece["jobs"].values() for step in job["steps"] if "run" in step]
        found = [shlex.split(step) for step in steps]
    else:
        found = [shlex.split(line) for job in piece.values() for line in job["script"]]
    return [command for command in found if command[0] == "firefly-memory"]


@pytest.fixture
def database(place: Place) -> Iterator[str]:
    with empty_postgresql(place.postgresql()) as url:
        yield url


def run(command: list[str], url: str, directory: Path) -> None:
    """As in the container: the URL in the environment, or where the secret is mounted."""
    secret = directory / "url"
    secret.write_text(url)
    mapped = [str(secret) if part.startswith("/run/secrets/") else part for part in command]
    ran = command_line.run(*mapped[1:], cwd=directory, FIREFLY_AGENTIC_MEMORY_URL=url)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("line", PIECES, ids=str)
def test_the_commands_of_each_example_run(line: int, database: str, tmp_path: Path) -> None:
    found = commands(PIECES[line])
    assert found
    if not any("upgrade" in command for command in found):
        run(["firefly-memory", "db", "upgrade"], database, tmp_path)
    for command in found:
        run(command, database, tmp_path)
    with connect(database, migrate=False) as store:
        assert store.count("n") == 0


def test_the_script_creates_a_missing_database_and_can_run_twice(tmp_path: Path) -> None:
    (script,) = (
        block.text
        for block in blocks(ROOT / "docs" / "deployment.md")
        if block.language == "bash" and "case $?" in block.text
    )
    variables = {
        "FIREFLY_AGENTIC_MEMORY_URL": f"sqlite:///{tmp_path}/memory.db",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    said = []
    for _ in range(2):
        ran = subprocess.run(
            ["bash", "-c", script], env=os.environ | variables, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        said.append(ran.stdout)
    assert "ran 0001" in said[0]
    assert said[1].endswith("nothing to do\n")


def named(piece: Any) -> Iterator[str]:
    """What a piece takes from elsewhere: images, actions, machines, packages."""
    for key, value in piece.items() if isinstance(piece, dict) else enumerate(piece) if isinstance(piece, list) else ():
        if key in {"image", "uses", "runs-on"}:
            yield value
        elif isinstance(value, str) and (package := re.search(r"pip install '?([^' ]+)", value)):
            yield package[1]
        else:
            yield from named(value)


@pytest.mark.parametrize("line", PIECES, ids=str)
def test_an_example_names_a_version_of_everything_that_it_takes_from_elsewhere(line: int) -> None:
    found = list(named(PIECES[line]))
    assert found
    exact = re.compile(r".+(:|@v|==)\d+\.\d+(\.\d+)?(-[\w-]+)?|ubuntu-\d+\.\d+")
    assert [name for name in found if not exact.fullmatch(name)] == []


def test_the_examples_install_the_version_of_this_checkout() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    packages = [name for piece in PIECES.values() for name in named(piece) if name.startswith("firefly-memory")]
    assert packages == [f"firefly-memory[postgres]=={version}"] * 2


def test_the_page_has_six_examples() -> None:
    assert len(PIECES) == 6


def test_the_library_reads_the_variables_of_the_examples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from firefly_memory.settings import PREFIX, MemorySettings

    named = set()
    for piece in PIECES.values():
        if "spec" in piece:
            named |= {each["name"] for container in containers(piece) for each in container.get("env", [])}
        for part in (*piece.get("jobs", {}).values(), *piece.get("services", {}).values()):
            named |= set(part.get("env", {})) | set(part.get("environment", {}) if "jobs" not in piece else {})
    ours = {name for name in named if name.startswith(PREFIX)}
    assert ours
    assert {name.removeprefix(PREFIX).lower() for name in ours} <= set(MemorySettings.model_fields)
