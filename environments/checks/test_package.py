"""What is published: an sdist that has everything, and a wheel that works in an empty environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
REPOSITORY = "https://code.invalid/firefly-memory"
"""Only these builds have it. What is published has the address in pyproject.toml."""

ADDRESS = re.compile(r'\]\(([^)\s]+)\)|\b(?:src|srcset|href)="([^"]+)"')


def run(*command: object, cwd: Path | None = None, **variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": "", **variables}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist, and with the wheel that was built from the sdist."""
    directory = tmp_path_factory.mktemp("dist")
    run("uv", "build", "--quiet", "--out-dir", directory, ROOT, FIREFLY_REPOSITORY=REPOSITORY)
    return directory


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def unpacked(built: Path) -> Path:
    """The directory of the unpacked sdist."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(built, filter="data")
    return built / sdist.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an empty environment that has the wheel and what it requires."""
    environment = tmp_path_factory.mktemp("installed")
    run("uv", "venv", "--quiet", "--clear", "--python", sys.executable, environment)
    run("uv", "pip", "install", "--quiet", "--python", environment / "bin" / "python", wheel)
    return environment / "bin"


@cache
def names(wheel: Path) -> frozenset[str]:
    with zipfile.ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


def metadata(wheel: Path) -> Message:
    (name,) = (name for name in names(wheel) if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(name).decode())


def addresses(text: str) -> list[str]:
    """The links and pictures of a page, outside of fenced code."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return ["".join(found) for found in ADDRESS.findall(prose)]


def letters(text: str) -> str:
    """The letters of a page, without those of pictures and of the addresses of links."""
    return re.sub(r"!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|\W", "", text)


def test_the_package_index_accepts_both_without_a_warning(built: Path) -> None:
    said = run(BIN / "twine", "check", "--strict", *built.glob("*.whl"), *built.glob("*.tar.gz"))
    assert said.count("PASSED") == 2


def test_the_wheel_has_types_and_migrations_and_no_tests(wheel: Path) -> None:
    assert {"firefly_memory/py.typed", "firefly_memory/migrations/env.py"} <= names(wheel)
    assert "firefly_memory/migrations/versions/0001_memory_entries.py" in names(wheel)
    assert {name.partition("/")[0].partition("-")[0] for name in names(wheel)} == {"firefly_memory"}
    assert not [name for name in names(wheel) if "/test_" in name or "conftest" in name or name.endswith(".pyc")]


def test_the_links_of_the_readme_are_absolute_in_the_package(wheel: Path) -> None:
    description = str(metadata(wheel).get_payload())
    found = addresses(description)
    assert len(found) == len(addresses((ROOT / "README.md").read_text()))
    assert [address for address in found if not address.startswith(("https://", "#"))] == []
    version = metadata(wheel)["version"]
    files = {address.partition("#")[0] for address in found if address.startswith(REPOSITORY)}
    paths = [re.sub(rf"{REPOSITORY}/(?:blob|raw)/v{re.escape(version)}/", "", file) for file in files]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_without_an_address_of_the_repository_no_link_of_the_package_is_dead(tmp_path: Path) -> None:
    run("uv", "build", "--quiet", "--wheel", "--out-dir", tmp_path, ROOT, FIREFLY_REPOSITORY="")
    (wheel,) = tmp_path.glob("*.whl")
    if metadata(wheel).get_all("project-url"):
        pytest.fail("pyproject.toml has an address now, so this test has nothing to look at: delete it")
    description = str(metadata(wheel).get_payload())
    assert [each for each in addresses(description) if not each.startswith(("https://", "#"))] == []
    assert letters(description) == letters((ROOT / "README.md").read_text()), "the texts of the links stay"
    run(BIN / "twine", "check", "--strict", wheel)


def test_the_package_names_its_repository_and_files_that_exist(wheel: Path) -> None:
    urls = dict(line.split(", ") for line in metadata(wheel).get_all("project-url") or [])
    assert urls.pop("Source") == REPOSITORY
    paths = [url.partition(f"/v{metadata(wheel)['version']}/")[2] for url in urls.values()]
    assert len(paths) == 3
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_nobody_can_ask_for_the_development_dependencies_of_an_installed_package(wheel: Path) -> None:
    extras = metadata(wheel).get_all("provides-extra") or []
    assert sorted(extras) == [
        *("agents", "all", "cli", "embeddings", "mongodb", "postgres", "strategies", "tokens", "vectors", "yaml")
    ]


def test_the_wheel_works_in_an_empty_environment(wheel: Path, installed: Path, tmp_path: Path) -> None:
    version = run(installed / "firefly-memory", "--version", cwd=tmp_path)
    assert version == f"firefly-memory {metadata(wheel)['version']}\n"
    url = f"sqlite:///{tmp_path}/memory.db"
    run(installed / "firefly-memory", "db", "upgrade", "--url", url, cwd=tmp_path)
    run(installed / "firefly-memory", "db", "check", "--url", url, cwd=tmp_path)
    use = "import firefly_memory as f; s = f.connect('memory:'); s.save('n', f.MemoryEntry()); print(s.count('n'))"
    assert run(installed / "python", "-W", "error", "-c", use, cwd=tmp_path) == "1\n"


def test_an_ini_of_two_lines_finds_the_migrations_in_the_wheel(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "alembic.ini").write_text("[alembic]\nscript_location = firefly_memory:migrations\n")
    run(installed / "alembic", "-x", f"url=sqlite:///{tmp_path}/memory.db", "upgrade", "head", cwd=tmp_path)
    save = "from firefly_memory import *; s = SQLiteStore('memory.db', migrate=False); s.save('n', MemoryEntry())"
    run(installed / "python", "-c", save, cwd=tmp_path)


def test_the_sdist_has_every_file_of_the_repository(unpacked: Path) -> None:
    packed = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    kept = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    assert packed - {"PKG-INFO"} == {name for name in kept if (ROOT / name).is_file()}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_a_page_at_the_top_of_the_sdist_names_files_that_it_has(page: str, unpacked: Path) -> None:
    found = [address.partition("#")[0] for address in addresses((unpacked / page).read_text())]
    paths = [address for address in found if address and "://" not in address]
    assert paths
    assert [path for path in paths if not (unpacked / path).exists()] == []


def test_a_part_of_the_suite_passes_in_the_sdist(unpacked: Path) -> None:
    python = ROOT / ".venv" / "bin" / "python"
    use = [python, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider"]
    variables = {"PYTHONPATH": str(unpacked / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    tests = ("tests/unit/test_codec.py", "tests/unit/test_errors.py", "tests/migrations/test_packaging.py")
    said = run(*use, *tests, "tests/docs/test_examples.py", cwd=unpacked, **variables)
    assert re.search(r"^\d{2,} passed", said, re.MULTILINE), said
