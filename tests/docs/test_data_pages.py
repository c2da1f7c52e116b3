"""`docs/data` has a page for each facet, and the general pages have what `make pages` writes from them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from firefly_memory.databases.sql.schema.metadata import metadata, tables_of
from firefly_memory.databases.sql.schema.names import POSTGRESQL_SCHEMA
from firefly_memory.facets import Absent, Facet, load
from firefly_memory.facets.registry import registered
from tests.toy_facet.facet import toys
from website import data_pages
from website.data_pages import PARTS, SECTIONS, part, rewritten, section
from website.paths import DOCS

FACETS = data_pages.of_the_library()
PAGES = sorted({page for page, _, _ in PARTS})

ASKED_FOR = {
    "storage": ["Tables", "Collections of MongoDB"],
    "people": ["Whose data", "Erasure", "Retention"],
    "moving": ["Archives and copies", "Untrusted archives"],
    "looking": ["Kinds of rows"],
}
"""The sections that each group of a declaration asks for."""


def name_of(facet: Facet) -> str:
    return facet.name


def rows_of(text: str) -> list[list[str]]:
    """The cells of each row of the first table, without its head."""
    lines = text.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_what_the_facets_say(page: str) -> None:
    assert (DOCS / page).read_text(encoding="utf-8") == rewritten(page), "run make pages"


def test_every_page_of_the_folder_belongs_to_a_facet() -> None:
    there = {path.name for path in (DOCS / data_pages.DATA).iterdir()}
    assert there == {data_pages.page_of(facet) for facet in FACETS} | {"README.md"}


@pytest.mark.parametrize("facet", FACETS, ids=name_of)
def test_the_page_of_a_facet_has_the_sections_that_its_declaration_asks_for(facet: Facet) -> None:
    declared = {group for group in ASKED_FOR if not isinstance(getattr(facet, group), Absent)}
    missing = [
        title for group in ASKED_FOR for title in ASKED_FOR[group] if group in declared and not section(facet, title)
    ]
    assert missing == []


@pytest.mark.parametrize("facet", FACETS, ids=name_of)
def test_the_page_of_a_facet_has_no_section_that_is_written_nowhere(facet: Facet) -> None:
    text = (DOCS / data_pages.DATA / data_pages.page_of(facet)).read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert set(headings) <= {*SECTIONS, "Tables", "Collections of MongoDB"}
    assert len(set(headings)) == len(headings)


@pytest.mark.parametrize("facet", FACETS, ids=name_of)
def test_every_table_and_every_index_of_a_facet_is_on_its_page(facet: Facet) -> None:
    text, own = section(facet, "Tables"), tables_of(facet)
    tables = [table for table in metadata(POSTGRESQL_SCHEMA).tables.values() if table.name in own]
    names = [table.name for table in tables] + [str(index.name) for table in tables for index in table.indexes]
    assert len(names) >= len(own) > 0
    assert [name for name in names if f"`{name}`" not in text] == []


@pytest.mark.parametrize("facet", FACETS, ids=name_of)
def test_every_collection_of_a_facet_is_on_its_page(facet: Facet) -> None:
    text = section(facet, "Collections of MongoDB")
    names = [each.name for each in facet.stored("collections") or () if each.name is not None]
    assert [name for name in names if f"`{name}`" not in text] == []


@pytest.mark.parametrize("facet", FACETS, ids=name_of)
def test_the_kinds_of_rows_are_those_that_the_facet_declares(facet: Facet) -> None:
    rows = rows_of(section(facet, "Kinds of rows"))
    resources = load(facet.looking, "resources") or ()
    assert [kind for kind, *_ in rows] == [f"`{each.kind}`" for each in resources]
    for (_, _, identity, _, selections), each in zip(rows, resources, strict=True):
        assert identity.count("/") == len(each.identity) - 1
        assert set(re.findall(r"`(\w+)`", selections)) == {name for fields in each.indexed for name in fields}


@pytest.mark.parametrize("facet", FACETS, ids=name_of)
def test_the_option_that_leaves_a_facet_out_is_on_its_page(facet: Facet) -> None:
    without = None if isinstance(facet.moving, Absent) else facet.moving.without
    assert (f"`{facet.option_without}`" in section(facet, "Archives and copies")) == isinstance(without, str)


def test_a_facet_of_another_package_is_in_the_calls_for_citus(tmp_path: Path) -> None:
    with registered(toys(tmp_path)):
        assert "- notes of toy 1: its rows have numbers of their own" in data_pages.distribution()


def test_a_link_of_a_facets_page_is_right_on_a_general_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _one_page(monkeypatch, tmp_path, "| [a](../b.md#c) | [d](#e) | [f](g.md) | [h](https://i/j.md) |")
    assert data_pages.put_together("Reads") == (
        "| a | b | c | d |\n|---|---|---|---|\n| [a](b.md#c) | [d](data/feeds.md#e) | [f](data/g.md) | [h](https://i/j.md) |\n"
    )


def test_tables_with_other_columns_are_not_put_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _one_page(monkeypatch, tmp_path, "| 1 | 2 | 3 | 4 |")
    page = tmp_path / "data" / "knowledge.md"
    page.write_text("# Knowledge\n\n## Reads\n\n| other | columns |\n|---|---|\n| 1 | 2 |\n")
    monkeypatch.setattr(
        data_pages, "of_the_library", lambda: [each for each in FACETS if each.name in ("knowledge", "feeds")]
    )
    with pytest.raises(ValueError, match="different columns"):
        data_pages.put_together("Reads")


def test_a_page_without_the_markers_of_a_part_is_an_error() -> None:
    with pytest.raises(ValueError, match="lacks the markers of 'Reads'"):
        part("# Scaling\n", "Reads")


def _one_page(monkeypatch: pytest.MonkeyPatch, docs: Path, row: str) -> None:
    """The facet of feeds alone, with a page that has this row."""
    (docs / "data").mkdir()
    (docs / "data" / "feeds.md").write_text(
        f"# Feeds\n\n## Reads\n\n| a | b | c | d |\n|---|---|---|---|\n{row}\n\nMore.\n"
    )
    monkeypatch.setattr(data_pages, "DOCS", docs)
    monkeypatch.setattr(data_pages, "of_the_library", lambda: [each for each in FACETS if each.name == "feeds"])
