"""Every documented import path and public name keeps working.

The list is written out in ``tests/support/public_names``, so that neither a change of the code nor one of the documents
makes it shorter. A name leaves it with a release that says so in the changelog, never with a change of the tree.
"""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

import firefly_memory
from firefly_memory import schema
from firefly_memory.facets import FACETS
from tests.support import documentation
from tests.support.documentation import ROOT, pages
from tests.support.public_names import NAMES, PACKAGE, REVISIONS

COMMAND = "firefly-memory"

LOGGERS = ["firefly_memory", "firefly_memory.stores.sql.migration_lock"]

# In the `alembic.ini` of users: locations, a branch, and the revisions, which they name on the command line.
LOCATION_OF_MIGRATIONS = "firefly_memory:migrations"
LOCATION_OF_BRANCH = "firefly_memory:alembic_branch"
BRANCH = "firefly_memory"


@pytest.mark.parametrize("module", NAMES)
def test_a_documented_module_has_its_names_also_if_it_is_the_first_to_be_imported(module: str) -> None:
    code = "\n".join(f"from {module} import {name}" for name in NAMES[module].split())
    ended = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("module", NAMES)
def test_every_name_of_all_is_in_the_list(module: str) -> None:
    imported = __import__(module, fromlist=["*"])
    assert set(getattr(imported, "__all__", ())) <= set(NAMES[module].split())


def test_every_facet_with_public_names_is_in_the_list() -> None:
    for facet in FACETS:
        package = facet.partition(".facet:")[0]
        has_names = hasattr(importlib.import_module(package), "__all__")
        file = f"tests/support/public_names/{package.rpartition('.')[2]}.py"
        assert package in NAMES or not has_names, f"{package} has public names: write them into {file}"


def test_every_revision_is_in_the_list() -> None:
    assert list(schema.REVISIONS) == REVISIONS, "a new revision belongs into a file of tests/support/public_names"


def test_every_name_of_the_list_can_be_imported_with_a_star() -> None:
    assert set(NAMES[PACKAGE].split()) - {"__version__"} == set(firefly_memory.__all__)


def test_every_import_in_documents_and_examples_is_in_the_list() -> None:
    found = set(imported_by_documents())
    listed = {f"{module}.{name}" for module, names in NAMES.items() for name in names.split()} | NAMES.keys()
    assert len(found) > 40  # they are found at all
    assert found - listed == set(), "what is documented belongs into NAMES"


def imported_by_documents() -> Iterator[str]:
    """Each module, and each name of a module, that a Python block or an example imports from this library."""
    for page in pages():
        for block in documentation.blocks(page):
            if block.language == "python":
                yield from imported_by(block.text)
    for example in sorted((ROOT / "examples").rglob("*.py")):
        yield from imported_by(example.read_text())


def imported_by(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == PACKAGE)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("command", [[COMMAND], [sys.executable, "-m", "firefly_memory.cli"]], ids=["script", "module"])
def test_the_command_runs_as_a_script_and_as_a_module(command: list[str]) -> None:
    (script,) = entry_points(group="console_scripts", name=COMMAND)
    assert script.value == "firefly_memory.cli:main"
    if command == [COMMAND]:
        command = [str(Path(sys.executable).with_name(COMMAND))]
    for arguments in (["--help"], ["db", "history"]):
        ended = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
    assert [line.split()[0] for line in ended.stdout.splitlines()] == REVISIONS


def test_the_loggers_that_the_documents_name_are_used() -> None:
    code = """if True:
        import importlib, json, logging, pkgutil
        import firefly_memory
        for module in pkgutil.walk_packages(firefly_memory.__path__, "firefly_memory."):
            if "alembic_branch" not in module.name and not module.name.endswith("__main__"):
                importlib.import_module(module.name)
        loggers = logging.root.manager.loggerDict
        print(json.dumps([name for name in loggers if isinstance(loggers[name], logging.Logger)]))
    """
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(LOGGERS) <= set(json.loads(ended.stdout))


def test_alembic_finds_the_migrations_where_an_ini_of_users_says() -> None:
    package, _, directory = LOCATION_OF_MIGRATIONS.partition(":")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included: dict[str, str] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    (source,) = (source for source, target in included.items() if target == f"{package}/{directory}")
    scripts = ScriptDirectory(str(ROOT / source))
    assert [scripts.get_revision(revision).revision for revision in REVISIONS] == REVISIONS


def test_alembic_finds_the_branch_where_an_ini_of_users_says() -> None:
    config = Config()
    config.set_main_option("script_location", str(ROOT / "tests" / "migrations" / "host_project"))
    config.set_main_option("version_locations", LOCATION_OF_BRANCH)
    config.set_main_option("path_separator", "space")
    scripts = ScriptDirectory.from_config(config)
    ours = [f"firefly_{revision}" for revision in REVISIONS]
    assert [scripts.get_revision(revision).revision for revision in ours] == ours
    assert BRANCH in scripts.get_revision(ours[-1]).branch_labels
    assert scripts.get_revision(f"{BRANCH}@{ours[0]}").revision == ours[0]
