"""``--facet``: facets of other packages, which have to be known before there are commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from firefly_memory.settings import read_facets_of_command, register_facets

_NEEDS_NO_FACET = {"-h", "--help", "--version"}


def register_facets_of(arguments: Sequence[str]) -> None:
    """Register the facets that a command line and the environment name: commands have options for each of them.

    Nobody is refused help because a name is wrong.
    """
    peek = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    peek.add_argument("--facet", action="append", nargs="?", default=[])
    peek.add_argument("--env-file", nargs="?")
    named, _ = peek.parse_known_args(list(arguments))
    if _NEEDS_NO_FACET.isdisjoint(arguments):
        env_file = Path(named.env_file) if named.env_file else None
        register_facets(read_facets_of_command(env_file), filter(None, named.facet))
