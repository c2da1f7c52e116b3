"""README and docs are true: their blocks run, their links work, and their tables match the code."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

import firefly_memory
from benchmarks.report import BEGIN, END
from environments.table import ENVIRONMENTS, PACKAGE
from tests.support import documentation
from tests.support.backends import Place
from tests.support.documentation import ROOT, Block, pages, prose
from tests.support.workers import run_command

POSTGRESQL = "localhost/firefly"
MONGODB = "mongodb://localhost:27017/"

BLOCKS = [block for page in pages() for block in documentation.blocks(page)]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


RUNNING = [page for page in pages() if any(block.runs and block.page == page for block in BLOCKS)]


@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_every_block_of_a_page_runs(page: Path, place: Place) -> None:
    text = "".join(block.text for block in BLOCKS if block.page == page and block.runs)
    replacements: documentation.Replacements = []
    if MONGODB in text:
        replacements.append((MONGODB, place.mongodb()))
    with _database_for(page, text, place) as url:
        if url is not None:
            real = url.partition("://")[2]
            replacements += [(f"user:pass@{POSTGRESQL}", real), (POSTGRESQL, real.rpartition("@")[2])]
        settings = json.dumps({"replacements": replacements, "postgresql_url": url})
        ended = run_command(documentation.main, [str(page), settings], place.directory, {**os.environ})
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"


@contextmanager
def _database_for(page: Path, text: str, place: Place) -> Iterator[str | None]:
    """The URL of a new PostgreSQL database for a page that needs one, without the roles that the page creates."""
    if POSTGRESQL not in text:
        yield None
        return
    server = place.postgresql()
    name = f"docs_{page.stem.lower()}"
    drop = [f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"]
    drop += [f"DROP ROLE IF EXISTS {role}" for role in re.findall(r"CREATE ROLE (\w+)", text)]

    def execute(statements: list[str]) -> None:
        with psycopg.connect(server, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    execute([*drop, f"CREATE DATABASE {name}"])
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        execute(drop)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.not_run is not None], ids=str)
def test_a_block_that_is_not_run_says_why(block: Block) -> None:
    assert block.language in documentation.RUN, "other blocks are never run and need no reason"
    assert len(block.not_run or "") >= 10


def test_every_block_names_a_language_that_is_run_or_only_shown() -> None:
    unknown = [str(block) for block in BLOCKS if block.language not in documentation.RUN | documentation.SHOWN]
    assert not unknown


LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The fragments that a page's headings have, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_between_pages_have_targets(page: Path) -> None:
    broken = []
    for target in LINK.findall(prose(page)):
        if target.startswith(("https://", "http://")):
            continue
        path, _, fragment = target.partition("#")
        aim = (page.parent / path).resolve() if path else page
        if not aim.exists() or not aim.is_relative_to(ROOT) or (fragment and fragment not in anchors(aim)):
            broken.append(target)
    assert not broken


def test_every_page_can_be_reached_from_the_readme() -> None:
    found: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in found or page.suffix != ".md":
            continue
        found.add(page)
        targets = (target.partition("#")[0] for target in LINK.findall(prose(page)))
        ahead += [(page.parent / target).resolve() for target in targets if target and ":" not in target]
    assert found == set(pages())


def section(page: Path, heading: str) -> str:
    """What stands below a heading, up to the next one."""
    found = re.search(rf"^(#+) {re.escape(heading)}$(.*?)(?=^#{{1,6}} |\Z)", prose(page), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{page} has no heading {heading!r}"
    return found[2]


STORES = ROOT / "docs" / "stores.md"


@pytest.mark.parametrize(
    "store",
    [
        firefly_memory.InMemoryStore,
        firefly_memory.FileStore,
        firefly_memory.SQLiteStore,
        firefly_memory.PostgreSQLStore,
        firefly_memory.MongoDBStore,
    ],
    ids=lambda store: store.__name__,
)
def test_the_documented_parameters_and_defaults_are_the_real_ones(store: type) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:`([^`]+)` )?\|", section(STORES, store.__name__), flags=re.MULTILINE)
    documented = dict(rows)
    parameters = list(inspect.signature(store).parameters.values())
    real = {each.name: _as_written(each) for each in parameters}
    assert documented == {name: "" if default == "None" else default for name, default in real.items()}


def _as_written(parameter: inspect.Parameter) -> str:
    default = parameter.default
    return f"0o{default:o}" if parameter.name.endswith("_mode") else repr(default).replace("'", '"')


def test_every_operation_is_in_the_table_under_both_its_names() -> None:
    table = section(STORES, "The operations")
    names = [
        name
        for name in vars(firefly_memory.EntryStore)
        if not name.startswith("_") and name not in {"blocking", "suspending", "capabilities", "in_transaction", "path"}
    ]
    deprecated = {name for name in names if name.endswith("_async")}
    assert [name for name in names if name not in deprecated and f"`{name}" not in table] == []


def test_every_public_name_is_documented() -> None:
    everything = "".join(page.read_text() for page in pages())
    assert [name for name in firefly_memory.__all__ if not re.search(rf"\b{name}\b", everything)] == []


def test_the_benchmarks_find_their_table_in_the_docs() -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    assert page.index(BEGIN) < page.index(END)


@pytest.mark.parametrize("name", ["blob_store.py", "test_blob_store.py"])
def test_the_example_backend_package_equals_the_code_on_its_page(name: str) -> None:
    shown = [block.text for block in BLOCKS if block.text.startswith(f"# {name}\n")]
    assert shown == [f"# {name}\n{(ROOT / PACKAGE / name).read_text()}"]


def test_every_environment_is_documented() -> None:
    table = section(ROOT / "docs" / "contributing.md", "Environments")
    rows = re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"`([\w-]+)`", row)] == list(ENVIRONMENTS)
