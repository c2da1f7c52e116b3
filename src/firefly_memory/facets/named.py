"""Facets of other packages by their dotted names, as an operator names them: none is searched for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from firefly_memory.errors import ConfigurationError
from firefly_memory.facets.groups import Facet
from firefly_memory.facets.registry import register

VARIABLE = "FIREFLY_AGENTIC_MEMORY_FACETS"
"""The variable of the environment that names the facets of other packages."""

_EXAMPLE = "package.facet:FACET"


def names_in(text: str) -> list[str]:
    """The names in ``text``, which are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def register_named(names: Iterable[str]) -> None:
    """Register the facets with these names; ``ConfigurationError`` for a name that is none of a facet."""
    for facet in [facet_at(name) for name in names]:  # all of them, or none
        register(facet)


def facet_at(name: str) -> Facet:
    """The facet that a dotted name such as ``package.facet:FACET`` stands for."""
    found = object_at(name, "a facet", _EXAMPLE)
    if not isinstance(found, Facet):
        raise ConfigurationError(f"{name} is no facet, it is of the type {type(found).__name__}")
    return found


def object_at(name: str, what: str, example: str) -> Any:
    """What a dotted name such as ``package.module:NAME`` stands for; ``ConfigurationError`` names ``what`` it is to be,
    and an example of such a name."""
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise ConfigurationError(f"{name!r} is no name of {what}; write it as {example}")
    this = f"{what.partition(' ')[2]} {name}"
    try:
        loaded = import_module(module)
    except Exception as error:  # whatever the code of the package raises
        raise ConfigurationError(f"the {this} cannot be imported: {type(error).__name__}: {error}") from error
    if not hasattr(loaded, attribute):
        raise ConfigurationError(f"the {this} cannot be imported: {module} has no {attribute}")
    return getattr(loaded, attribute)
