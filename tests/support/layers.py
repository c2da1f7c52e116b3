"""The layers of the library, from the ground up."""

from __future__ import annotations

from firefly_memory.facets import FACETS

# The packages of the library's facets. Two are below the stores.
PACKAGES = {name.split(".")[1] for name in FACETS}
_BELOW_STORES = {"tombstones", "entries"}

# Each layer may import those below it. A name stands for a module or for a package with all that is in it.
LAYERS = [
    {"errors", "clock", "lazy_names", "likely_names", "reprs", "validation", "url_text", "yaml_text"},
    {"concurrency"},
    {"identifiers", "cursors", "codec", "python_values"},
    {"messages", "tokens", "language_model"},
    {"databases", "facets"},
    {"search"},
    {*_BELOW_STORES, "protocols", "moving", "looking", "people", "erasing"},
    {"stores"},
    PACKAGES - _BELOW_STORES,
    {"urls", "settings", "target", "database_store", "schema"},
    {"working", "summarization"},
    {"strategies"},
    {"manager"},
    {"transfer", "archive", "copying", "service", "erasure", "retention", "sweeper"},
    {"agents"},
    {"reasoning", "pipeline"},
    {"cli", "__main__"},
    {"testing", "alembic", "alembic_target"},
    {""},
]
