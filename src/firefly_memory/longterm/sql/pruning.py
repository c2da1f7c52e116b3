"""Facts and people that are deleted only if nobody has written to them since they were read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from firefly_memory.databases.sql.session import Session
from firefly_memory.longterm.rows import UserRow
from firefly_memory.longterm.sql.list_statements import ListStatements
from firefly_memory.longterm.sql.people_statements import PeopleStatements
from firefly_memory.longterm.sql.statements import FactStatements


def last_written_by(session: Session, ids: Sequence[str], written_by: Sequence[str]) -> list[str]:
    """Those of some facts whose last write is one of these. They stay as they are until the transaction ends."""
    texts = session.dialect.texts
    values = {"ids": texts(ids), "writes": texts(written_by)}
    return [row[0] for row in session.fetch(session.statements(FactStatements).last_written_by, values)]


def idle_people(session: Session, rows: Sequence[UserRow], since: datetime) -> list[UserRow]:
    """Those of some people who were not updated since, and have no facts of their own. For one who stands for another
    person this one counts. Nobody updates them, or stores a fact of theirs, until the transaction ends."""
    words = {row.stands_for for row in rows}
    locked = session.statements(PeopleStatements).lock_group(session, sorted(words))
    roots = [row for row in locked if row.word in words]
    idle = {row.word for row in roots if row.updated_at < since and not _has_facts(session, row.word)}
    return [row for row in rows if row.stands_for in idle]


def _has_facts(session: Session, word: str) -> bool:
    statement = session.statements(ListStatements).ids
    return bool(session.fetch(statement, {"words": session.dialect.texts([word])}))
