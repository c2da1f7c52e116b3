"""README and docs are true: their blocks run, their links work, and their tables match the code."""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path

import pytest

import firefly_memory
from benchmarks.report import BEGIN, END
from environments.table import ENVIRONMENTS, PACKAGE
from tests.support import documentation
from tests.support.backends import Place
from tests.support.documentation import ROOT, Block, pages, prose
from tests.support.workers import run_command

pytestmark = pytest.mark.thorough

BLOCKS = [block for page in pages() for block in documentation.blocks(page)]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


RUNNING = [page for page in pages() if any(block.runs and block.page == page for block in BLOCKS)]


@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_every_block_of_a_page_runs(page: Path, place: Place) -> None:
    with documentation.settings_of(page, place.postgresql, place.mongodb) as settings:
        arguments = [str(page), json.dumps(settings)]
        ended = run_command(documentation.main, arguments, place.directory, {**os.environ})
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"


INCOMPLETE = {
    "uses a name of an earlier block": "print(number)",
    "awaits outside of a function": "import asyncio\nawait asyncio.sleep(0)",
    "prints something else": "print(1 + 1)  # 3",
    "leaves a file open": "import sys\nopen(sys.argv[0])",
}


@pytest.mark.parametrize("text", INCOMPLETE.values(), ids=INCOMPLETE)
def test_a_block_that_cannot_be_pasted_fails(text: str, place: Place) -> None:
    page = place.directory / "page.md"
    page.write_text(f"```python\nnumber = 1\nprint(number)  # 1\n```\n\n```python\n{text}\n```\n")
    settings = json.dumps({"replacements": [], "postgresql_url": None})
    ended = run_command(documentation.main, [str(page), settings], place.directory, {**os.environ})
    assert (ended.returncode, ended.stdout.count("running")) == (1, 2)


WITH_PYTHON = [page for page in RUNNING if any(b.page == page and b.runs and b.language == "python" for b in BLOCKS)]


@pytest.mark.parametrize("page", [page for page in WITH_PYTHON if page.parent.name == "docs"], ids=name_of)
def test_a_page_with_snippets_says_at_its_top_what_to_install(page: Path) -> None:
    (line,) = re.findall(r"^Install: `pip install .+`$", page.read_text().partition("\n```")[0], re.MULTILINE)
    assert any(each.startswith("firefly-memory") for each in documentation.required(page)), line


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.not_run is not None], ids=str)
def test_a_block_that_is_not_run_says_why(block: Block) -> None:
    assert block.language in documentation.RUN, "other blocks are never run and need no reason"
    assert len(block.not_run or "") >= 10


def test_every_block_names_a_language_that_is_run_or_only_shown() -> None:
    unknown = [str(block) for block in BLOCKS if block.language not in documentation.RUN | documentation.SHOWN]
    assert not unknown


@pytest.mark.parametrize("page", [page for page in pages() if page.name != "changelog.md"], ids=name_of)
def test_no_page_is_longer_than_300_lines(page: Path) -> None:
    assert len(page.read_text().splitlines()) <= 300


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


PAGES_OF_STORES: dict[type[firefly_memory.EntryStore], str] = {
    firefly_memory.InMemoryStore: "stores.md",
    firefly_memory.FileStore: "files.md",
    firefly_memory.SQLiteStore: "sqlite.md",
    firefly_memory.PostgreSQLStore: "postgresql.md",
    firefly_memory.MongoDBStore: "mongodb.md",
}


@pytest.mark.parametrize("store", PAGES_OF_STORES, ids=lambda store: store.__name__)
def test_the_documented_parameters_and_defaults_are_the_real_ones(store: type[firefly_memory.EntryStore]) -> None:
    text = (ROOT / "docs" / PAGES_OF_STORES[store]).read_text()
    table = text.partition("| parameter | default | |\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| (?:`([^`]+)` )?\|", table, flags=re.MULTILINE)
    documented = dict(rows)
    parameters = list(inspect.signature(store).parameters.values())
    real = {each.name: _as_written(each) for each in parameters}
    assert documented == {name: "" if default == "None" else default for name, default in real.items()}


def _as_written(parameter: inspect.Parameter) -> str:
    default = parameter.default
    return f"0o{default:o}" if parameter.name.endswith("_mode") else repr(default).replace("'", '"')


def test_every_operation_is_in_the_table_under_both_its_names() -> None:
    table = section(ROOT / "docs" / "stores.md", "The operations")
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
    assert [name for row in rows for name in re.findall(r"`([\w.-]+)`", row)] == list(ENVIRONMENTS)
