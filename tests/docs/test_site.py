"""The site of ``make docs``: its navigation and reference are complete, and its checks find what is wrong.

MkDocs itself, which looks for broken links and anchors, is not installed here: ``make docs`` runs it.
"""

from __future__ import annotations

import re
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from firefly_memory.cli.commands import COMMANDS
from tests.support.documentation import pages
from tests.support.public_names import NAMES
from website import language_model_texts, reference
from website.checks import problems
from website.docstrings import as_markdown
from website.links import place_of, with_site_links
from website.navigation import pages_in, with_folders
from website.paths import ROOT
from website.pictures.__main__ import FOLDER, PICTURES
from website.pictures.drawing import Picture


class _Loader(yaml.SafeLoader):
    """For ``mkdocs.yml``, which names a function of Python."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python", lambda *_: None)


CONFIGURATION: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text(), _Loader)


def test_the_build_is_strict_and_loads_no_font() -> None:
    assert CONFIGURATION["strict"] is True
    assert {rule for rules in CONFIGURATION["validation"].values() for rule in rules.values()} == {"warn"}
    assert CONFIGURATION["theme"]["font"] is False


def test_every_page_is_once_in_the_navigation() -> None:
    listed = pages_in(with_folders(CONFIGURATION["nav"]))
    assert sorted(listed) == sorted(place_of(page.relative_to(ROOT).as_posix()) for page in pages()), (
        "see nav in mkdocs.yml"
    )


@pytest.mark.parametrize("module", NAMES)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    documented = reference.documented_names()
    there = {id(_object(path)) for path in documented.values() if path not in NAMES}
    names = set(NAMES[module].split()) - {"__version__"}
    missing = {name for name in names if f"{module}.{name}" not in documented}
    assert {name for name in missing if id(_object(f"{module}.{name}")) not in there} == set(), "see docs/reference"


def test_the_reference_has_public_names_only() -> None:
    public = {f"{module}.{name}" for module, names in NAMES.items() for name in names.split()}
    assert set(reference.documented_names().values()) <= public | NAMES.keys()


def _object(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def test_the_page_of_the_command_line_has_the_help_of_every_command() -> None:
    page = reference.with_commands((reference.FOLDER / "command-line.md").read_text())
    assert [
        name for name in COMMANDS if f"\n## firefly-memory {name}\n\n```text\nusage: firefly-memory {name}" not in page
    ] == []


@pytest.mark.parametrize(
    ("link", "page", "there"),
    [
        ("[a](docs/agents.md#tools)", "README.md", "[a](agents.md#tools)"),
        ("[a](agents.md)", "docs/tokens.md", "[a](agents.md)"),
        ("[a](../SECURITY.md)", "docs/security.md", "[a](reporting.md)"),
        ("[a](../README.md)", "docs/decisions/README.md", "[a](../README.md)"),
        ("[`a`](../migrations)", "docs/migrations.md", "[`a`](https://host/migrations)"),
        ("![a](docs/agents.md)", "SECURITY.md", "![a](agents.md)"),
        ('<img src="docs/agents.md">', "README.md", '<img src="agents.md">'),
        ("[a](#tools)", "docs/agents.md", "[a](#tools)"),
        ("[a](https://elsewhere/b.md)", "README.md", "[a](https://elsewhere/b.md)"),
        ("`[a](docs/agents.md)`", "README.md", "`[a](docs/agents.md)`"),
        ("```text\n[a](docs/agents.md)\n```", "README.md", "```text\n[a](docs/agents.md)\n```"),
        ("[a](docs/missing.md)", "README.md", "[a](docs/missing.md)"),
    ],
)
def test_a_link_is_right_on_the_site(link: str, page: str, there: str) -> None:
    assert with_site_links(link, page, "https://host/{path}") == there


def test_a_link_to_a_file_that_the_site_does_not_have_is_text_while_nobody_knows_the_address_of_the_repository() -> (
    None
):
    assert (
        with_site_links("See [the `migrations`](../migrations).", "docs/migrations.md", None) == "See the `migrations`."
    )


def test_docstrings_become_markdown_with_links_to_the_reference() -> None:
    text = "Makes a :class:`~firefly_memory.MemoryManager` of :mod:`re`, with :class:`Window`::\n\n    x = 1\n\n    y = 2\n\nEnd."
    assert as_markdown(text) == (
        "Makes a [`MemoryManager`][firefly_memory.MemoryManager] of `re`, with [`Window`][firefly_memory.Window]:\n\n"
        "```python\nx = 1\n\ny = 2\n```\n\nEnd."
    )


def test_tables_and_rules_of_docstrings_become_markdown() -> None:
    table = "====  ===\na     one\nbcd   two words\n====  ==="
    assert as_markdown(table) == "|  |  |\n| --- | --- |\n| a | one |\n| bcd | two words |"
    assert as_markdown("R1, equal\n    Values\n    are equal.\nR2, yours\n    It is.") == (
        "**R1, equal**\n\nValues\nare equal.\n\n**R2, yours**\n\nIt is.\n"
    )


@pytest.mark.parametrize(
    ("markdown", "first"),
    [
        ("# Title\n\nWhat is [it](a.md)?\nThis.\n\nMore.", "What is it? This."),
        ("# Title\n\n<!-- a\n\ncomment -->\n\n| a |\n|---|\n\n```text\na\n\nb\n```\n\n![b](b.svg)\n\nText.", "Text."),
        ("# Title\n", ""),
    ],
)
def test_the_text_for_language_models_has_the_first_paragraph_of_a_page(markdown: str, first: str) -> None:
    assert language_model_texts.first_paragraph(markdown) == first


GOOD = """
<meta name="viewport"><script src="style.css"></script><link rel="canonical" href="https://host/">
<a href="https://host/"><h2 id="part"><a href="index.html#part"><a href="#part">
"""


def site(directory: Path, *, page: str = GOOD, style: str = "a { color: red }", listed: str = "index.html") -> Path:
    (directory / "search").mkdir()
    (directory / "search" / "search_index.json").touch()
    (directory / "index.html").write_text(page)
    (directory / "style.css").write_text(style)
    (directory / "llms.txt").write_text(f"[Start]({listed})")
    names = zlib.compress(b"firefly_memory.connect py:function 1 reference/stores.html#$ -\n")
    (directory / "objects.inv").write_bytes(b"# 1\n# 2\n# 3\n# 4\n" + names)
    return directory


def test_the_checks_find_nothing_in_a_good_site(tmp_path: Path) -> None:
    assert problems(site(tmp_path), {"firefly_memory.connect"}) == []


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"page": f'{GOOD}<script src="https://host/a.js">'}, "index.html loads https://host/a.js"),
        ({"page": f'{GOOD}<img src="//host/a.png">'}, "index.html loads //host/a.png"),
        ({"page": f'{GOOD}<link rel="stylesheet" href="http://host/a.css">'}, "index.html loads http://host/a.css"),
        ({"page": f'{GOOD}<link rel="preconnect" href="http://host">'}, "index.html loads http://host"),
        ({"page": f'{GOOD}<a href="missing.html">'}, "index.html has a broken link to missing.html"),
        ({"page": f'{GOOD}<a href="#missing">'}, "index.html has a broken link to #missing"),
        ({"page": f'{GOOD}<img src="missing.svg">'}, "index.html has a broken link to missing.svg"),
        ({"page": "<p>"}, "index.html does not say that it fits the width of a phone"),
        ({"style": "@font-face { src: url('https://host/a.woff') }"}, "style.css loads url('https://host/a.woff')"),
        ({"style": '@import "https://host/a.css";'}, 'style.css loads @import "https://host/a.css";'),
        ({"listed": "other.html"}, "llms.txt has no index.html"),
    ],
)
def test_the_checks_find_what_is_wrong(tmp_path: Path, bad: dict[str, str], problem: str) -> None:
    assert problems(site(tmp_path, **bad), {"firefly_memory.connect"}) == [problem]


def test_the_checks_find_a_name_that_the_reference_lacks(tmp_path: Path) -> None:
    assert problems(site(tmp_path), {"firefly_memory.adapt"}) == ["the reference has no firefly_memory.adapt"]


def test_the_pictures_in_the_repository_are_those_that_are_drawn() -> None:
    drawn = {name: draw().svg() for name, draw in PICTURES.items()}
    assert {path.name: path.read_text() for path in FOLDER.iterdir()} == drawn, "run python -m website.pictures"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_can_be_read_aloud_and_loads_nothing(name: str) -> None:
    root = ET.fromstring(PICTURES[name]().svg())
    found = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert {"title", "desc", "text"} <= found <= {"svg", "title", "desc", "style", "text", "rect", "path"}
    assert not [name for element in root.iter() for name in element.attrib if name.endswith("href")]
    assert "@media (prefers-color-scheme: dark)" in "".join(root.itertext())


def test_words_that_have_no_room_in_a_picture_are_an_error() -> None:
    with pytest.raises(ValueError, match="'twenty characters, 20' needs"):
        Picture(100, 100, "", "").text(0, 0, "twenty characters, 20", room=100)


@pytest.mark.parametrize("name", PICTURES)
def test_a_page_shows_the_picture_and_says_what_is_in_it(name: str) -> None:
    shown = re.compile(rf"!\[[^\]]{{40,}}\]\([\w./]*pictures/{re.escape(name)}\)")
    assert [page for page in pages() if shown.search(page.read_text())]
