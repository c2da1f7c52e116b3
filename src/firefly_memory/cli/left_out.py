"""The options ``--without-…``: one for each facet that archives and copies can leave out."""

from __future__ import annotations

import argparse
from typing import Any

from firefly_memory.transfer.registered import MovedFacet, moved_facets


def add_without(command: argparse.ArgumentParser) -> None:
    for facet in moved_facets():
        if facet.without is not None:
            command.add_argument(facet.option, action="store_true", help=facet.without)


def wanted(arguments: argparse.Namespace) -> dict[str, Any]:
    """For ``export_jsonl()``, ``import_jsonl()`` and ``copy_store()``: which of these facets go along."""
    return {
        facet.name: not getattr(arguments, f"without_{facet.name}")
        for facet in moved_facets()
        if facet.without is not None
    }


def left_out(arguments: argparse.Namespace, *, raw_messages: bool = True) -> list[MovedFacet]:
    """The facets that do not go along."""
    without = [name for name, is_wanted in wanted(arguments).items() if not is_wanted]
    names = [facet.name for facet in moved_facets(without, raw_messages=raw_messages)]
    return [facet for facet in moved_facets() if facet.name not in names]
