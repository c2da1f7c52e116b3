"""What a declaration is made of: groups of entries, each given or absent, and dotted names that are loaded on use."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from typing import Any

from firefly_memory.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Absent:
    """What a facet does not have, and why."""

    reason: str


def absent(reason: str) -> Absent:
    """For an entry of a declaration that does not apply."""
    return Absent(reason)


NOT_DECLARED: Any = object()

Name = str | Absent
"""A dotted name, ``"package.module:object"``."""


class Declaration:
    """A group of entries, each of which has to be given."""

    def __post_init__(self) -> None:
        missing = [each.name for each in fields(self) if getattr(self, each.name) is NOT_DECLARED]  # type: ignore[arg-type]
        if missing:
            name = getattr(self, "name", NOT_DECLARED)
            of = "a facet" if name is NOT_DECLARED else f"the facet {name!r}"
            group = type(self).__name__
            raise ConfigurationError(
                f"{group} of {of} does not declare {', '.join(missing)}: give each a value, or absent('the reason')"
            )


def load(group: Declaration | Absent, entry: str) -> Any:
    """What an entry of a group names, a tuple if it has several names; ``None`` if it is absent."""
    declared = group if isinstance(group, Absent) else getattr(group, entry)
    if isinstance(declared, Absent):
        return None
    if isinstance(declared, tuple):
        return tuple(load_name(name) for name in declared)
    return load_name(declared) if isinstance(declared, str) else declared


@cache
def load_name(name: str) -> Any:
    """The object that ``package.module:object`` names, or the module ``package.module``; the module is imported."""
    module, _, attribute = name.partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded
