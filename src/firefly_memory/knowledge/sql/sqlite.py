"""Chunks in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from firefly_memory.databases.sql.session import Session, Values
from firefly_memory.knowledge.log import ChunkRow
from firefly_memory.knowledge.sql.statements import KnowledgeStatements


class SQLiteKnowledgeStatements(KnowledgeStatements):
    def write(self, session: Session, rows: Sequence[ChunkRow], refusal: Values) -> int:
        return session.execute_many(self.insert, [{**self.values(row), **refusal} for row in rows])
