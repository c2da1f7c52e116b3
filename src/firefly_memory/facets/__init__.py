"""What a facet registers, and which facets there are.

A facet is one part of the memory, in one package: entries, conversations, agent history. It declares here what the rest
of the library needs of it: its tables and collections, its operations, how it is archived and copied. Nothing else in
the library names a facet.

A declaration holds dotted names, ``"package.module:object"``, which are loaded when they are needed: reading the
declarations loads no driver and no SQLAlchemy. What does not apply is declared ``absent``, with the reason.
"""

from firefly_memory.facets.declaration import Absent, Name, absent, load, load_name
from firefly_memory.facets.groups import Facet, Looking, Moving, Operations, Packaging, People, Storage
from firefly_memory.facets.logs import STORES, FacetLogs, HasLogs, LogOf, Purged, log_if_there
from firefly_memory.facets.named import VARIABLE, facet_at, names_in, register_named
from firefly_memory.facets.registry import FACETS, all_facets, facet_named, register, registered

__all__ = [
    "FACETS",
    "STORES",
    "VARIABLE",
    "Absent",
    "Facet",
    "FacetLogs",
    "HasLogs",
    "LogOf",
    "Looking",
    "Moving",
    "Name",
    "Operations",
    "Packaging",
    "People",
    "Purged",
    "Storage",
    "absent",
    "all_facets",
    "facet_at",
    "facet_named",
    "load",
    "load_name",
    "log_if_there",
    "names_in",
    "register",
    "register_named",
    "registered",
]
