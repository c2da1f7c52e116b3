"""Every public name, by the module that it is imported from, and every revision.

They are written out in the modules of this folder, a module for a package of the library. All modules are found. A
facet has one with its names, and with the revisions that came with it.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

PACKAGE = "firefly_memory"

NAMES: dict[str, str] = {}

REVISIONS: list[str] = []
"""In their order."""

for _each in pkgutil.iter_modules(__path__, f"{__name__}."):
    _written = import_module(_each.name)
    assert not NAMES.keys() & _written.NAMES.keys(), f"{_each.name} repeats names of another module"
    NAMES |= _written.NAMES
    REVISIONS += getattr(_written, "REVISIONS", [])
REVISIONS.sort()
