"""Tables of the predecessors, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firefly_memory.databases.sql.legacy_tables import ForeignTable, ForeignTables, foreign_tables
from firefly_memory.databases.sql.schema.names import POSTGRESQL_SCHEMA
from firefly_memory.errors import ConfigurationError
from firefly_memory.transfer.importers.firefly_legacy.entries import DOCUMENTS, IDS, Row
from firefly_memory.transfer.importers.firefly_legacy.sources import Source, the_only


@contextmanager
def table_source(url: str, name: str | None, *, timeout: float) -> Iterator[Source]:
    with foreign_tables(url, POSTGRESQL_SCHEMA, timeout=timeout) as tables:
        found = _chosen(tables, name)
        document = next(each for each in DOCUMENTS if each in found.columns)
        rows = (Row(*row) for row in tables.rows(found, document))
        unique_ids = tables.has_unique(found, IDS)
        as_text = not found.columns[document]
        yield Source(f"table {found}", rows, unique_ids, as_text, estimate=lambda: tables.estimate(found))


def _chosen(tables: ForeignTables, name: str | None) -> ForeignTable:
    there = {str(each): each for each in tables.all()}
    if name is None:
        fitting = [each for each in there if _fits(there[each])]
        return there[the_only(fitting, "table", sorted(there), "--table")]
    named = [each for each in there if name in (each, there[each].name)]
    chosen = there[the_only(named, "table", sorted(there), "--table")]
    if not _fits(chosen):
        columns = ", ".join(chosen.columns)
        raise ConfigurationError(
            f"the table {chosen} is not a predecessor's, which has namespace, entry_id and content or data: "
            f"its columns are {columns}"
        )
    return chosen


def _fits(table: ForeignTable) -> bool:
    return table.columns.keys() >= IDS and not table.columns.keys().isdisjoint(DOCUMENTS)


def check_schema(url: str, schema_name: str, *, timeout: float) -> bool:
    """Whether this library's schema is in the new place; ``ConfigurationError`` if a predecessor's is in its way."""
    with foreign_tables(url, schema_name, timeout=timeout) as tables:
        in_the_way = tables.in_the_way()
        revision = tables.revision()
    if in_the_way:
        place, instead = "file", "choose another file with --url"
        if not url.lower().startswith("sqlite"):
            place = f"schema {schema_name}"
            instead = (
                f"rename it (ALTER SCHEMA {schema_name} RENAME TO {schema_name}_old), or choose another one with "
                "--schema"
            )
        raise ConfigurationError(
            f"the {place} of the new store has {', '.join(in_the_way)} already, which this library has not made; "
            f"{instead}"
        )
    return revision is not None
