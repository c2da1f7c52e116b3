"""The languages of indexes in SQL."""

from __future__ import annotations

from firefly_memory.databases.sql.operation import REPEAT, operation, reads
from firefly_memory.databases.sql.session import Session
from firefly_memory.search.index import Subject
from firefly_memory.search.index_language import IndexLanguage, another_language
from firefly_memory.search.sql.statements import statements_of


@reads
def read_language(session: Session, subject: Subject) -> IndexLanguage | None:
    rows = session.fetch(session.statements(statements_of(subject)).language, {"subject": subject.kind})
    return IndexLanguage(*rows[0]) if rows else None


def agree_on_language(session: Session, subject: Subject, language: IndexLanguage) -> bool:
    """Whether the index had none; ``LanguageError`` if it has another one. Inside the transaction that writes rows."""
    kept, is_new = read_language(session, subject), False
    if kept is None:
        values = {"subject": subject.kind, **language._asdict()}
        is_new = session.execute(session.statements(statements_of(subject)).set_language, values) == 1
        kept = read_language(session, subject)
    if kept != language:
        raise another_language(subject, kept, language)
    return is_new


@operation(on_lost_reply=REPEAT)
def set_language(session: Session, subject: Subject, language: IndexLanguage) -> None:
    values = {"subject": subject.kind, **language._asdict()}
    with session.writing():
        session.execute(session.statements(statements_of(subject)).change_language, values)
