"""The snippets of each page run as files of their own, where only that is installed which the page says.

This runs in the environment for development, which has the servers. It makes an environment for each set of
requirements, and installs the built wheel there.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import documentation, servers
from tests.support.documentation import ROOT, blocks, pages, required
from tests.support.tiktoken_vocabularies import fill_cache

HOME = ROOT / ".cache" / "environments" / "docs-snippets"
PAGES = [page for page in pages() if any(block.runs and block.language == "python" for block in blocks(page))]

_LIBRARY = re.compile(r"(?:firefly-memory|\.)(?P<extras>\[[\w,]+\])?")
_RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.support.documentation import main
sys.exit(main(sys.argv[2:]))
"""
_OF_THIS_MACHINE = ("FIREFLY_", "TIKTOKEN_", "DATA_GYM_", "PYTHONPATH", "VIRTUAL_ENV")


@functools.cache
def wheel() -> Path:
    shutil.rmtree(HOME, ignore_errors=True)
    subprocess.run(["uv", "build", "--quiet", "--wheel", "--out-dir", HOME / "wheel"], cwd=ROOT, check=True)
    (built,) = (HOME / "wheel").glob("*.whl")
    return built


@functools.cache
def python_with(requirements: tuple[str, ...]) -> Path:
    """The interpreter of a new environment with ``requirements``, where the library is the wheel."""
    directory = wheel().parents[1] / "-".join(re.sub(r"\W+", "_", each).strip("_") for each in requirements)
    python = directory / "bin" / "python"
    subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, directory], check=True)
    installed = [
        f"firefly-memory{library['extras'] or ''} @ {wheel().as_uri()}"
        if (library := _LIBRARY.fullmatch(each))
        else each
        for each in requirements
    ]
    subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, *installed], check=True)
    return python


@pytest.fixture(scope="session")
def running() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def postgresql(running: ExitStack) -> str:
    return running.enter_context(servers.postgresql())


@pytest.fixture(scope="session")
def mongodb(running: ExitStack) -> str:
    return running.enter_context(servers.mongodb())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_snippets_of_a_page_run_with_what_it_says_to_install(
    page: Path, postgresql: str, mongodb: str, tmp_path: Path
) -> None:
    python = python_with(tuple(required(page)))
    vocabularies = fill_cache(tmp_path)
    directory = tmp_path / "work"
    directory.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OF_THIS_MACHINE)}
    with documentation.settings_of(page, lambda: postgresql, lambda: mongodb) as settings:
        command = [sys.executable, "-c", _RUN, str(ROOT), str(page), json.dumps({**settings, "python": str(python)})]
        variables = {**environment, "TIKTOKEN_CACHE_DIR": str(vocabularies)}
        ended = subprocess.run(
            command, cwd=directory, env=variables, capture_output=True, text=True, check=False, timeout=300
        )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
