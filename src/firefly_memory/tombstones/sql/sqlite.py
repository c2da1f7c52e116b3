"""Tombstones in SQLite: one writer at a time."""

from __future__ import annotations

from functools import cached_property

from sqlalchemy import text

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.tombstones.sql.statements import TombstoneStatements


class SQLiteTombstoneStatements(TombstoneStatements):
    @cached_property
    def scrub(self) -> Statement:  # type: ignore[override]
        """Empties the WAL, which has the pages as they were before."""
        return self.compiled(text("PRAGMA wal_checkpoint(TRUNCATE)"))
