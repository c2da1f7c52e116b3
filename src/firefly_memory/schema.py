"""The schema's tables and revisions, under their documented import path."""

from __future__ import annotations

from typing import Any

from firefly_memory.databases.sql.schema import revisions
from firefly_memory.databases.sql.schema.metadata import POSTGRESQL_SCHEMA, VERSION_TABLE, metadata
from firefly_memory.databases.sql.schema.revisions import is_later_and_compatible

HEAD: str
"""The revision that this version of the library needs."""

REVISIONS: tuple[str, ...]
"""Every revision that this version of the library knows, oldest first."""

__all__ = ["HEAD", "POSTGRESQL_SCHEMA", "REVISIONS", "VERSION_TABLE", "is_later_and_compatible", "metadata"]


def __getattr__(name: str) -> Any:
    match name:
        case "HEAD":
            return revisions.head()
        case "REVISIONS":
            return revisions.revisions()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
