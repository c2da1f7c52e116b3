"""Facts are deleted with everything of theirs."""

from __future__ import annotations

from collections.abc import Sequence

from firefly_memory.databases.sql.session import Session
from firefly_memory.longterm.rows import FACTS
from firefly_memory.longterm.sql.statements import FactStatements
from firefly_memory.search.sql.index import delete_vectors


def delete_with_all(session: Session, ids: Sequence[str]) -> int:
    """Delete facts with their versions and vectors, inside a transaction; how many facts there were."""
    statements, texts = session.statements(FactStatements), session.dialect.texts
    there = texts(delete_vectors(session, FACTS, ids))
    session.execute(statements.delete_versions_of, {"ids": there})
    return session.execute(statements.delete, {"ids": there})
