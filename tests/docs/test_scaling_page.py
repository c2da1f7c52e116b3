"""`docs/scaling.md` has the calls that distribute the tables of every facet."""

from __future__ import annotations

from pathlib import Path

from firefly_memory.databases.sql.schema.metadata import tables_of
from firefly_memory.facets import all_facets
from firefly_memory.facets.declaration import Absent
from firefly_memory.facets.registry import registered
from tests.support import scaling_page
from tests.toy_facet.facet import toys


def test_the_generated_part_is_what_the_registry_says() -> None:
    _, inside, _ = scaling_page.parts()
    assert inside == scaling_page.generated(), "run python -m tests.support.scaling_page"


def test_every_facet_is_on_the_page() -> None:
    _, inside, _ = scaling_page.parts()
    for facet in all_facets():
        key = scaling_page.declared_key(facet)
        if isinstance(key, Absent):
            assert f"- {facet.title}: {key.reason}\n" in inside
            continue
        for table in tables_of(facet):
            assert inside.count(f".{table}', '{key}'") == 1


def test_a_facet_of_another_package_is_in_the_generated_part(tmp_path: Path) -> None:
    with registered(toys(tmp_path)):
        assert "- notes of toy 1: its rows have numbers of their own" in scaling_page.generated()
