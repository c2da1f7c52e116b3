"""Names that are loaded when they are first used, so that nobody pays for what they do not use."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def lazily(name: str, where: dict[str, str], namespace: dict[str, Any]) -> Any:
    """For a module's ``__getattr__``: the object called ``name``, kept in the module's ``namespace``."""
    if name not in where:
        raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
    namespace[name] = found = getattr(import_module(where[name]), name)
    return found
