"""Tables of the predecessors, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from firefly_memory.databases.sql.legacy_tables import ForeignTable, ForeignTables, Open, foreign_tables
from firefly_memory.databases.sql.postgresql.one_connection import one_connection
from firefly_memory.databases.sql.schema.names import POSTGRESQL_SCHEMA
from firefly_memory.databases.sql.sqlite.legacy_file import legacy_file
from firefly_memory.errors import ConfigurationError
from firefly_memory.target import Target
from firefly_memory.transfer.importers.firefly_legacy.entries import DOCUMENTS, IDS, Row
from firefly_memory.transfer.importers.firefly_legacy.sources import Source, Where, the_only


@dataclass(frozen=True, slots=True)
class TableImporter:
    """Databases of one dialect; ``open`` opens one."""

    open: Open

    @contextmanager
    def source(self, url: str, where: Where, *, timeout: float) -> Iterator[Source]:
        with foreign_tables(self.open(url, POSTGRESQL_SCHEMA, timeout)) as tables:
            found = _chosen(tables, where.table)
            document = next(each for each in DOCUMENTS if each in found.columns)
            rows = (Row(*row) for row in tables.rows(found, document))
            unique_ids = tables.has_unique(found, IDS)
            as_text = not found.columns[document]
            yield Source(f"table {found}", rows, unique_ids, as_text, estimate=lambda: tables.estimate(found))

    def has_been_here(self, new: Target, *, timeout: float) -> bool:
        with foreign_tables(self.open(new.url, new.schema_name, timeout)) as tables:
            in_the_way = tables.in_the_way()
            revision = tables.revision()
        if in_the_way:
            raise _in_the_way(in_the_way, new)
        return revision is not None


SQLITE_IMPORTER = TableImporter(legacy_file)
POSTGRESQL_IMPORTER = TableImporter(one_connection)


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


def _in_the_way(tables: list[str], new: Target) -> ConfigurationError:
    place, instead = "file", "choose another file with --url"
    if "schema_name" in new.options:
        place = f"schema {new.schema_name}"
        instead = (
            f"rename it (ALTER SCHEMA {new.schema_name} RENAME TO {new.schema_name}_old), or choose another one with "
            "--schema"
        )
    return ConfigurationError(
        f"the {place} of the new store has {', '.join(tables)} already, which this library has not made; {instead}"
    )
