"""Names that are loaded when they are first used, so that nobody pays for what they do not use."""

from __future__ import annotations

import pkgutil
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import Any

from firefly_memory import likely_names


def lazily(name: str, where: dict[str, str], namespace: dict[str, Any]) -> Any:
    """For a module's ``__getattr__``: the object called ``name``, kept in the module's ``namespace``, or a submodule.

    The error for another name says which name is probably meant.
    """
    module = namespace["__name__"]
    if name in where:
        namespace[name] = found = getattr(import_module(where[name]), name)
        return found
    problem = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        raise AttributeError(problem)
    if "__path__" in namespace and find_spec(f"{module}.{name}") is not None:
        return _submodule(f"{module}.{name}")
    meant = likely_names.meant(name, where, {**_names_of_facets(), **likely_names.NAMES})
    advice = "" if meant is None else f"; did you mean {meant}?"
    if advice and _is_asked_by_an_import(sys._getframe(1).f_back):  # noqa: SLF001 - there is no other way
        raise ImportError(f"cannot import name {name!r} from {module!r}{advice}", name=module)
    raise AttributeError(f"{problem}{advice}")


@cache
def _names_of_facets() -> dict[str, str]:
    """The classes and functions that the packages of facets offer, by the guess. Such a package has a ``facet.py``."""
    package = __name__.rpartition(".")[0]
    found: dict[str, str] = {}
    for each in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
        if each.ispkg and find_spec(f"{each.name}.facet") is not None:
            names = getattr(import_module(each.name), "__all__", ())
            found |= likely_names.guesses({name: f"{each.name}.{name}" for name in names if not name.isupper()})
    return found


def _submodule(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as exc:  # an extra is not installed
        raise AttributeError(str(exc)) from exc


def _is_asked_by_an_import(caller: FrameType | None) -> bool:
    """Whether the module is asked by ``from … import``, which shows nothing of an ``AttributeError``."""
    return caller is not None and caller.f_code.co_name == "_handle_fromlist"
