"""Tombstones in PostgreSQL: who else is writing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from sqlalchemy import Double, Text, bindparam, cast, column, func, literal_column, select, table

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.schema.columns import is_guarded
from firefly_memory.databases.sql.schema.metadata import metadata
from firefly_memory.tombstones.sql.statements import TombstoneStatements


def _catalog(name: str, *columns: str) -> Any:
    return table(name, *[column(each) for each in columns], schema="pg_catalog").c


class PostgreSQLTombstoneStatements(TombstoneStatements):
    @cached_property
    def guarded(self) -> Mapping[str, Any]:
        tables = metadata(self._schema_name).tables.values()
        names = self.dialect.texts([each.name for each in tables if is_guarded(each)])
        return {"schema_name": self._schema_name, "tables": names}

    @cached_property
    def writers(self) -> Statement:  # type: ignore[override]
        lock = _catalog("pg_locks", "database", "relation", "virtualtransaction", "pid", "mode", "granted")
        relation = _catalog("pg_class", "oid", "relname", "relnamespace")
        namespace = _catalog("pg_namespace", "oid", "nspname")
        database = _catalog("pg_database", "oid", "datname")
        this_one = select(database.oid).where(database.datname == func.pg_catalog.current_database())
        guarded = (
            select(relation.oid)
            .where(relation.relnamespace == namespace.oid)
            .where(cast(namespace.nspname, Text) == bindparam("schema_name", type_=Text))
            .where(self.dialect.is_one_of(cast(relation.relname, Text), "tables"))
        )
        written_to = select(lock.virtualtransaction).where(
            lock.database == this_one.scalar_subquery(),
            lock.relation.in_(guarded),
            lock.mode == literal_column("'RowExclusiveLock'"),
            lock.granted,
            lock.pid.is_distinct_from(func.pg_catalog.pg_backend_pid()),
        )
        return self.compiled(written_to)

    @cached_property
    def pause(self) -> Statement:
        return self.compiled(select(func.pg_catalog.pg_sleep(bindparam("seconds", type_=Double))))
