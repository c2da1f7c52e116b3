"""A facet of another package that an operator names: every command knows it, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import pytest
from pymongo import MongoClient

from firefly_memory import SchemaMismatchError, connect
from firefly_memory.cli.exits import Exit
from firefly_memory.facets import VARIABLE as FACETS
from firefly_memory.schema import REVISIONS
from firefly_memory.settings import PREFIX, FacetSettings
from tests.support.backends import Place
from tests.support.facet_package import NAME, VARIABLE, environment, run, write_package

pytestmark = pytest.mark.thorough

Run = Callable[..., CompletedProcess[str]]

LAST = REVISIONS[-1]
"""The last revision of the library."""

BOTH_ADVICES = f"pip install --upgrade firefly-memory, or if the revision belongs to a facet of another package, name the facet in {VARIABLE}"  # fmt: skip

_WITH_A_MANAGER = """
from firefly_memory import MemoryManager, clock
from tests.toy_facet.facet import key
from tests.toy_facet.log import Note
import asyncio, sys

async def main():
    async with MemoryManager.from_config() as manager:
        notes = manager.store.suspending.log(key())
        if sys.argv[1:]:
            await notes.put(Note(*sys.argv[1:]))
        print(*await notes.page(9, "", clock.now()))

asyncio.run(main())
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_package(tmp_path)


@pytest.fixture
def ran(package: Path, tmp_path: Path) -> Run:
    """Runs a command that has to end with ``code``. The variable names ``facets``, unless they are none."""

    def ran(*arguments: str, code: int = 0, facets: str = NAME, **variables: str) -> CompletedProcess[str]:
        named = {VARIABLE: facets} if facets else {}
        ended = run(list(arguments), environment(package, **named, **variables), tmp_path)
        assert ended.returncode == code, ended.stdout + ended.stderr
        assert "Traceback" not in ended.stderr
        return ended

    return ran


def test_the_variable_is_called_as_the_settings_call_it() -> None:
    assert f"{PREFIX}{next(iter(FacetSettings.model_fields)).upper()}" == FACETS == VARIABLE


def test_the_commands_for_the_schema_know_it(ran: Run, url: str) -> None:
    upgraded = ran("firefly-memory", "db", "upgrade", "--url", url)
    assert "toy_1" in upgraded.stdout
    assert "toy_1 (head)" in ran("firefly-memory", "db", "current", "--url", url).stdout
    assert "as it should be" in ran("firefly-memory", "db", "check", "--url", url).stdout
    assert "toy_1" in ran("firefly-memory", "db", "history", "--url", url).stdout
    assert "CREATE TABLE" in (sql := ran("firefly-memory", "db", "sql", f"{LAST}:toy_1", "--url", url).stdout)
    assert "toy_1_notes" in sql
    assert "toy_1" in ran("firefly-memory", "doctor", "--url", url).stdout
    if url.startswith("postgresql"):
        assert "toy_1_notes" in ran("firefly-memory", "db", "grants", "service", "--url", url).stdout
    downgraded = ran("firefly-memory", "db", "downgrade", LAST, "--yes", "--url", url)
    assert LAST in downgraded.stdout


def test_alembic_finds_its_revisions(ran: Run, url: str) -> None:
    ran("alembic", "-x", f"url={url}", "upgrade", "head")
    assert "toy_1 (head)" in ran("alembic", "-x", f"url={url}", "current").stdout
    assert "No new upgrade operations" in ran("alembic", "-x", f"url={url}", "check").stdout
    assert "toy_1_notes" in ran("alembic", "-x", f"url={url}", "upgrade", f"{LAST}:head", "--sql").stdout
    ran("firefly-memory", "db", "check", "--url", url)
    ran("alembic", "-x", f"url={url}", "downgrade", "-1")
    assert ran("alembic", "-x", f"url={url}", "current").stdout.strip() == LAST
    ran("alembic", "-x", f"url={url}", "stamp", "toy_1")
    assert "toy_1 (head)" in ran("alembic", "-x", f"url={url}", "-x", f"facet={NAME}", "current", facets="").stdout


def test_alembic_takes_it_from_its_arguments_and_from_a_file_of_variables(ran: Run, url: str, tmp_path: Path) -> None:
    ran("alembic", "-x", f"url={url}", "-x", f"facet={NAME}", "-x", f"facet={NAME}", "upgrade", "head", facets="")
    (tmp_path / "variables").write_text(f"{VARIABLE}={NAME}\n")
    current = ran("alembic", "-x", f"url={url}", "-x", "env_file=variables", "current", facets="")
    assert "toy_1 (head)" in current.stdout


@pytest.fixture(params=["sqlite", "postgresql", "mongodb"])
def source(request: pytest.FixtureRequest, place: Place) -> Iterator[str]:
    """The URL of an empty database of the test's own."""
    if request.param != "mongodb":
        yield request.getfixturevalue(request.param)
        return
    parts = urlsplit(place.mongodb())
    own = f"toys_{uuid4().hex[:12]}"
    yield urlunsplit(parts._replace(path=f"/{own}"))
    client: MongoClient[Any]
    with MongoClient(place.mongodb()) as client:
        client.drop_database(own)


def test_data_of_it_is_written_archived_imported_and_copied(source: str, ran: Run) -> None:
    url, config = source, {f"{PREFIX}URL": source}
    ran("firefly-memory", "db", "upgrade", "--url", url)
    noted = ran("python", "-c", _WITH_A_MANAGER, "a", "one word", **config).stdout
    assert "one word" in noted
    ran("firefly-memory", "db", "check", "--url", url)
    assert "1 notes of toy 1" in ran("firefly-memory", "export", "--url", url, "archive.jsonl").stderr
    imported = ran("firefly-memory", "import", "--url", "sqlite:///imported.db", "archive.jsonl")
    assert "1 notes of toy 1" in imported.stderr
    ran("firefly-memory", "copy", "--from", url, "--to", "sqlite:///copied.db", "--quiet")
    for path in ("imported.db", "copied.db"):
        config[f"{PREFIX}URL"] = f"sqlite:///{path}"
        assert ran("python", "-c", _WITH_A_MANAGER, **config).stdout == noted
    without = ran("firefly-memory", "export", "--url", url, "--without-toy-1", "without.jsonl")
    assert "toy 1" not in without.stderr


def test_without_the_setting_both_advices_are_given(ran: Run, url: str) -> None:
    ran("firefly-memory", "db", "upgrade", "--url", url)
    for command in (["db", "upgrade"], ["export"]):
        ended = ran("firefly-memory", *command, "--url", url, code=Exit.AHEAD, facets="")
        assert f"is at toy_1, this version needs {LAST}; run: {BOTH_ADVICES}" in ended.stderr
    found = json.loads(ran("firefly-memory", "doctor", "--json", "--url", url, code=Exit.DRIFT, facets="").stdout)
    advices = [each["do"] for each in found["findings"] if each["what"] == "schema"]
    assert advices == [BOTH_ADVICES.replace(", or ", "\n")]
    with pytest.raises(SchemaMismatchError, match=VARIABLE), connect(url):
        pass
    refused = ran("alembic", "-x", f"url={url}", "upgrade", "head", code=255, facets="")
    assert "toy_1" in refused.stderr


@pytest.mark.parametrize("said", [["--facet", NAME], [f"--facet={NAME}"], ["--env-file", "variables"]], ids=" ".join)
def test_an_option_or_a_file_of_variables_may_name_it(said: list[str], ran: Run, tmp_path: Path) -> None:
    (tmp_path / "variables").write_text(f"{VARIABLE}={NAME}\n")
    url = ["--url", "sqlite:///memory.db"]
    behind = ran("firefly-memory", "doctor", *url, *said, code=Exit.BEHIND, facets="")
    assert f"firefly-memory db upgrade {' '.join(said).replace('=', ' ')} --url" in behind.stderr + behind.stdout
    assert "toy_1" in ran("firefly-memory", "db", "upgrade", *url, *said, facets="").stdout
    ran("firefly-memory", "export", *url, *said, "--without-toy-1", "archive.jsonl", facets="")


def test_the_option_is_for_copies_as_well(ran: Run) -> None:
    ran("firefly-memory", "db", "upgrade", "--url", "sqlite:///memory.db")
    copy = ["copy", "--from", "sqlite:///memory.db", "--to", "sqlite:///copy.db", "--quiet", "--facet", NAME]
    ran("firefly-memory", *copy, facets="")
    assert "toy_1 (head)" in ran("firefly-memory", "db", "current", "--url", "sqlite:///copy.db").stdout


_WRONG = {
    "nowhere.facet:FACET": "the facet nowhere.facet:FACET cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
    "notes_package.broken:FACET": "cannot be imported: RuntimeError: the licence has expired",
    "notes_package.facet:NOTHING": "cannot be imported: notes_package.facet has no NOTHING",
    "notes_package.facet:TEXT": "notes_package.facet:TEXT is no facet, it is of the type str",
    "notes_package.facet": "'notes_package.facet' is no name of a facet; write it as package.facet:FACET",
    f"{NAME},notes_package.facet:ANOTHER": "there is a facet named 'toy_1' already, and this is another one",
}  # fmt: skip


@pytest.mark.parametrize("names", _WRONG)
def test_a_wrong_name_is_one_clear_line(names: str, ran: Run) -> None:
    url = "sqlite:///memory.db"
    ended = ran("firefly-memory", "db", "current", "--json", "--url", url, code=Exit.USAGE, facets=names)
    assert ended.stderr.startswith(f"firefly-memory: {VARIABLE}: ")
    assert _WRONG[names] in ended.stderr
    assert _WRONG[names] in json.loads(ended.stdout)["error"]


def test_whoever_reads_a_wrong_name_says_where_it_was(ran: Run) -> None:
    url, wrong, words = "sqlite:///memory.db", "nowhere:FACET", "the facet nowhere:FACET cannot be imported"
    by_option = ran("firefly-memory", "export", "--url", url, "--facet", wrong, code=Exit.USAGE)
    assert by_option.stderr.startswith(f"firefly-memory: --facet: {words}")
    by_alembic = ran("alembic", "-x", f"url={url}", "-x", f"facet={wrong}", "upgrade", "head", code=255)
    assert f"-x facet=: {words}" in by_alembic.stdout + by_alembic.stderr
    config = {f"{PREFIX}URL": "memory:"}
    raised = ran(
        "python",
        "-c",
        f"try:\n {_FROM_CONFIG}\nexcept ConfigurationError as error:\n print(error)",
        facets=wrong,
        **config,
    )
    assert f"{VARIABLE}: {words}" in raised.stdout


_FROM_CONFIG = "from firefly_memory import ConfigurationError, MemoryManager; MemoryManager.from_config()"


def test_the_same_facet_may_be_named_twice(ran: Run) -> None:
    names = f" {NAME}, notes_package.facet:ALIAS ,, firefly_memory.entries.facet:FACET,"
    upgraded = ran("firefly-memory", "db", "upgrade", "--url", "sqlite:///a.db", "--facet", NAME, facets=names)
    assert "toy_1" in upgraded.stdout


def test_a_planted_file_of_variables_names_no_facet_for_a_command(ran: Run, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"{VARIABLE}={NAME}\n")
    assert "toy_1" not in ran("firefly-memory", "db", "history", facets="").stdout
    assert "toy_1" in ran("firefly-memory", "db", "history", "--env-file", ".env", facets="").stdout


def test_help_is_there_even_if_a_name_is_wrong(ran: Run) -> None:
    for arguments in (["--help"], ["--version"], ["db", "upgrade", "-h"]):
        assert ran("firefly-memory", *arguments, facets="nowhere:FACET").stdout
    assert "--facet NAME" in ran("firefly-memory", "db", "upgrade", "--help").stdout
