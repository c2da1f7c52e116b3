"""Chunks in PostgreSQL: many rows, or one with its vector, by one statement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import BigInteger, Text, func, select

from firefly_memory.databases.sql.compiled_statement import Statement
from firefly_memory.databases.sql.postgresql.arrays import array_in, array_text
from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.knowledge.log import CHUNKS, ChunkRow
from firefly_memory.knowledge.sql.statements import KnowledgeStatements
from firefly_memory.search.index import Vector
from firefly_memory.search.index_language import IndexLanguage
from firefly_memory.search.sql.postgresql import insert_with_vector
from firefly_memory.search.sql.statements import statements_of
from firefly_memory.tombstones.sql.statements import not_erased

_ROWS = 500
"""So many rows are sent at once."""


class PostgreSQLKnowledgeStatements(KnowledgeStatements):
    def write_at_once(
        self, session: Session, row: ChunkRow, vector: Vector, language: IndexLanguage, refusal: Values
    ) -> int:
        values = {**self.values(row), **refusal, **vector._asdict(), **language._asdict(), "subject": CHUNKS.kind}
        with session.attempt():
            return int(session.fetch(self.insert_with_vector, values)[0][0])

    @cached_property
    def insert_with_vector(self) -> Statement:
        index = statements_of(CHUNKS)(self.dialect, self._schema_name)
        return self.compiled(insert_with_vector(index, self.insert_one(index.has_language)))

    def write(self, session: Session, rows: Sequence[ChunkRow], refusal: Values) -> int:
        if len(rows) == 1:
            return session.execute(self.insert, {**self.values(rows[0]), **refusal})
        in_order = [self.values(row) for row in sorted(rows)]  # so that two writers of the same rows wait in one order
        written = 0
        for start in range(0, len(in_order), _ROWS):
            some = in_order[start : start + _ROWS]
            arrays = {name: array_text(row[name] for row in some) for name in ChunkRow._fields}
            written += session.execute(self.insert_many, {**arrays, **refusal})
        return written

    @cached_property
    def insert_many(self) -> Statement:
        """:attr:`insert` for rows given as one array a column."""
        columns = [self.table.c[name] for name in ChunkRow._fields]
        types = [BigInteger() if column.name == "position" else Text() for column in columns]
        arrays = [array_in(column.name, kind) for column, kind in zip(columns, types, strict=True)]
        rows = func.unnest(*arrays).table_valued(*ChunkRow._fields).render_derived(name="rows")
        values: list[Any] = [self.dialect.value_in(column, rows.c[column.name]) for column in columns]
        source = select(*values).select_from(rows).where(not_erased(self, 1))
        insert = self.dialect.insert(self.table).from_select(list(ChunkRow._fields), source)
        return self.compiled(insert.on_conflict_do_nothing())
