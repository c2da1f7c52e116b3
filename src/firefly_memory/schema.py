"""The schema's tables, under their documented import path."""

from firefly_memory.databases.sql.schema.metadata import (
    HEAD,
    POSTGRESQL_SCHEMA,
    REVISIONS,
    VERSION_TABLE,
    is_later_and_compatible,
    metadata,
)

__all__ = ["HEAD", "POSTGRESQL_SCHEMA", "REVISIONS", "VERSION_TABLE", "is_later_and_compatible", "metadata"]
