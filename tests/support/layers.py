"""The layers of the library, from the ground up."""

from __future__ import annotations

# Each layer may import those below it. A name stands for a module or for a package with all that is in it.
LAYERS = [
    {"errors", "clock", "lazy_names", "likely_names", "reprs", "validation", "url_text", "yaml_text"},
    {"concurrency"},
    {"identifiers", "cursors", "codec", "python_values"},
    {"messages", "tokens", "language_model"},
    {"databases", "facets"},
    {"search"},
    {"tombstones", "entries", "protocols", "moving", "looking", "people"},
    {"stores"},
    {"conversations", "agent_history", "knowledge", "feeds"},
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
