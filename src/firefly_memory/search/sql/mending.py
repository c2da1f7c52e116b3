"""An index in SQL, apart from the words of its rows: the full-text table of SQLite, and vectors without a row."""

from __future__ import annotations

from firefly_memory.databases.sql.errors import driver_error
from firefly_memory.databases.sql.session import Session
from firefly_memory.search.index import Subject
from firefly_memory.search.sql.statements import IndexStatements, statements_of


def index_damage(session: Session, subject: Subject) -> list[str]:
    """What is wrong, in sentences."""
    statements = session.statements(statements_of(subject))
    found = []
    if not _is_whole(session, statements):
        found.append("the full-text table is not in step with its rows")
    if not subject.has_vectors:
        return found
    for count, what in ((statements.stray_vectors, "vectors"), (statements.stray_signatures, "signatures")):
        stray = session.fetch(count, {})[0][0]
        if stray:
            found.append(f"{stray:,} {what} have no {subject.kind}")
    return found


def mend(session: Session, subject: Subject) -> None:
    """Make it right."""
    statements = session.statements(statements_of(subject))
    if not _is_whole(session, statements):
        assert statements.rebuild_words is not None
        with session.writing():
            session.execute(statements.rebuild_words, {})
    if not subject.has_vectors:
        return
    with session.transaction():
        session.execute(statements.delete_stray_vectors, {})
        session.execute(statements.delete_stray_signatures, {})


def _is_whole(session: Session, statements: IndexStatements) -> bool:
    """Whether the full-text table has exactly the words of the rows; true where there is none."""
    if statements.check_words is None:
        return True
    try:
        with session.writing():
            session.execute(statements.check_words, {})
    except Exception as exc:
        if statements.engine.is_out_of_step(driver_error(exc)):
            return False
        raise
    return True
