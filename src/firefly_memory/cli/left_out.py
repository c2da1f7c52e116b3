"""The options ``--without-…``: one for each facet that archives and copies can leave out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from firefly_memory.cli.command import Option

if TYPE_CHECKING:
    from firefly_memory.transfer.registered import MovedFacet


def without_options() -> list[Option]:
    """Of the facets that are registered when the command is called."""
    from firefly_memory.facets import Moving, all_facets

    return [
        Option([facet.option_without], is_flag=True, help=facet.moving.without)
        for facet in all_facets()
        if isinstance(facet.moving, Moving) and isinstance(facet.moving.without, str)
    ]


def wanted(without: Mapping[str, bool]) -> dict[str, Any]:
    """For ``export_jsonl()``, ``import_jsonl()`` and ``copy_store()``: which of these facets go along."""
    return {name.removeprefix("without_"): not is_left_out for name, is_left_out in without.items()}


def left_out(without: Mapping[str, bool], *, raw_messages: bool = True) -> list[MovedFacet]:
    """The facets that do not go along."""
    from firefly_memory.transfer.registered import moved_facets

    names = [name for name, is_wanted in wanted(without).items() if not is_wanted]
    along = [facet.name for facet in moved_facets(names, raw_messages=raw_messages)]
    return [facet for facet in moved_facets() if facet.name not in along]
