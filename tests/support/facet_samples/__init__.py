"""What tests store of each facet: a module for each, which is found by the facet's name.

A module has these functions, as far as its facet has such data:

* ``async store_data_of(store, owner)``: one person's data. Every text has the owner's name in it.
* ``async assert_late_writes_are_refused(store, owner)``: what is written of an erased person.
* ``store_hostile(store, text)``: rows of each resource. Every text is ``text``, or has it in it.
* ``store_archived(store)``: items of each kind, the same in every process.

``OF_SEVERAL_NODES`` says, if there are any, which statements of the facet are of several nodes by design, and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from firefly_memory.facets import Absent, Facet, LogOf, all_facets, log_if_there
from firefly_memory.looking import resources_of
from firefly_memory.protocols import StoreView


def sample_of(facet: str, function: str) -> Any:
    """A function of the facet's sample. The test fails if it is missing."""
    sample = _module(facet)
    where = f"tests/support/facet_samples/{facet}.py"
    assert sample is not None, f"the facet {facet} has no sample: write {where}; its package says what is in it"
    found = getattr(sample, function, None)
    assert found is not None, f"the sample of the facet {facet} lacks {function}: write it in {where}"
    return found


def of_people(view: StoreView, function: str) -> Iterator[Any]:
    """A function of each facet that the store has and in which something belongs to people."""
    for facet in all_facets():
        if not isinstance(facet.people, Absent) and is_in(view, facet):
            yield sample_of(facet.name, function)


def looked_at() -> list[Facet]:
    """The facets with rows that people list."""
    return [facet for facet in all_facets() if resources_of(facet)]


def archived() -> list[Facet]:
    """The facets with items in archives."""
    return [facet for facet in all_facets() if not isinstance(facet.moving, Absent)]


def is_in(view: StoreView, facet: Facet) -> bool:
    """Whether the store has the facet."""
    log: LogOf[object] = LogOf(facet.name)
    return isinstance(facet.operations, Absent) or log_if_there(view, log) is not None


def of_several_nodes() -> dict[str, str]:
    """Statements of all facets that are of several nodes by design, as ``facet: Class.name``, and why."""
    return {
        f"{facet.name}: {statement}": why
        for facet in all_facets()
        for statement, why in getattr(_module(facet.name), "OF_SEVERAL_NODES", {}).items()
    }


def _module(facet: str) -> ModuleType | None:
    name = f"{__name__}.{facet}"
    return None if find_spec(name) is None else import_module(name)
