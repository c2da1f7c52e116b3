"""A further facet adds files and changes almost none: no module lists facets by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from firefly_memory.databases.sql.schema.metadata import tables_of
from firefly_memory.facets import FACETS, Facet, Packaging, absent, facet_named, load
from firefly_memory.looking import resources_of
from firefly_memory.testing.rules import __path__ as folders_of_rules
from tests.support.documentation import ROOT
from tests.support.facet_samples import sample_of

UNRELATED = ("knowledge", "feeds")
"""A module that names both of these facets has a list of facets, to which the next one would be added."""

LISTS = {
    "src/firefly_memory/facets/registry.py",  # where a facet of the library is registered
    "tests/cli/test_downgrade_consent.py",  # the tables of revisions up to 0010
    "tests/registry/test_further_facets.py",
}


@cache
def names_of(facet: Facet) -> set[str]:
    """How code names a facet, but for its modules."""
    return {
        facet.name,
        facet.title,
        facet.option_without,
        *tables_of(facet),
        *(each.kind for each in resources_of(facet)),
    }


def named_in(source: str) -> Iterator[str]:
    """The texts and imported modules in Python code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def names_the_facet(source: str, facet: Facet) -> bool:
    package = f"firefly_memory.{facet.name}"
    return any(each in names_of(facet) or f"{each}.".startswith(f"{package}.") for each in named_in(source))


def lists_facets(source: str) -> bool:
    return all(names_the_facet(source, facet_named(name)) for name in UNRELATED)


def modules() -> list[Path]:
    """Those of the library and the tests; the pages of the documentation have tests of their own."""
    found = [each for folder in ("src", "tests") for each in (ROOT / folder).rglob("*.py")]
    return [each for each in found if (ROOT / "tests" / "docs") not in each.parents]


def test_no_module_lists_facets() -> None:
    assert {str(each.relative_to(ROOT)) for each in modules() if lists_facets(each.read_text())} == LISTS


@pytest.mark.parametrize(
    "source",
    [
        'DATA = ["chunks", "feed-messages"]',
        'TABLES = ["memory_chunks", "memory_feeds"]',
        "from firefly_memory.knowledge.log import X\nfrom firefly_memory.feeds.log import Y",
        'RULES = ["firefly_memory.knowledge.rules", "feeds"]',
    ],
)
def test_a_list_is_found(source: str) -> None:
    assert lists_facets(source)
    assert not lists_facets(source.replace("feed", "need"))


def test_a_facet_without_a_sample_is_named() -> None:
    with pytest.raises(AssertionError, match=r"facet diary has no sample: write tests/support/facet_samples/diary\.py"):
        sample_of("diary", "store_data_of")
    with pytest.raises(AssertionError, match="the sample of the facet entries lacks store_data_of"):
        sample_of("entries", "store_data_of")


def test_every_module_with_rules_is_declared_by_one_facet() -> None:
    """A module that no facet declares would not be loaded, so that its checks would never run."""
    declared: list[str] = []
    for name in FACETS:
        rules = getattr(facet_named(name.split(".")[1]).packaging, "rules", None)
        declared += rules if isinstance(rules, tuple) else ()
    (folder,) = folders_of_rules
    with_checks = {each.stem for each in Path(folder).glob("*.py") if "\n@check(" in each.read_text()}
    assert sorted(declared) == sorted(f"firefly_memory.testing.rules.{each}" for each in with_checks)


def test_rules_may_be_several_modules_or_one_name() -> None:
    nothing = absent("nothing")
    several = Packaging(settings=nothing, extra=nothing, rules=("firefly_memory.clock", "firefly_memory.errors"))
    assert [each.__name__ for each in load(several, "rules")] == ["firefly_memory.clock", "firefly_memory.errors"]
    one = Packaging(settings=nothing, extra=nothing, rules="firefly_memory.clock:now")
    assert callable(load(one, "rules"))


def test_the_package_of_a_facet_has_its_name() -> None:
    """Tests find what belongs to a facet by this name."""
    for name in FACETS:
        package = name.split(".")[1]
        assert facet_named(package).name == package
        assert find_spec(f"firefly_memory.{package}.facet") is not None
