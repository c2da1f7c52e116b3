"""``--facet``: facets of other packages, which have to be known before there are options for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

_NEEDS_NO_FACET = {"-h", "--help"}


def register_facets_of(arguments: Sequence[str]) -> None:
    """Register the facets that a command line and the environment name: commands have options for each of them.

    Nobody is refused help because a name is wrong.
    """
    if not _NEEDS_NO_FACET.isdisjoint(arguments):
        return
    from firefly_memory.settings import read_facets_of_command, register_facets

    env_file = next(reversed([*_values("--env-file", arguments)]), "")
    register_facets(read_facets_of_command(Path(env_file) if env_file else None), _values("--facet", arguments))


def _values(option: str, arguments: Sequence[str]) -> Iterator[str]:
    """Those of an option that are not empty, before the command line is read."""
    for number, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == option:
            value = value if equals else "".join(arguments[number + 1 : number + 2])
            if value:
                yield value
