"""What a search asks an accelerator: each dialect answers in its own way, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from firefly_memory.databases.sql.operation import reads
from firefly_memory.databases.sql.session import Session
from firefly_memory.facets import load_name
from firefly_memory.search.filters import Conditions
from firefly_memory.search.index import Nearest, Subject

_BY_DIALECT = {"postgresql": "firefly_memory.search.sql.accelerators.nearest:PGVECTOR"}


class _Answers(Protocol):
    def is_there(self, session: Session, subject: Subject, embedder: str) -> bool: ...

    def nearest(
        self,
        session: Session,
        subject: Subject,
        scopes: Sequence[str],
        embedder: str,
        vector: bytes,
        most: int,
        conditions: Conditions,
    ) -> Nearest | None: ...


@reads
def has_accelerator(session: Session, subject: Subject, embedder: str) -> bool:
    answers = _of(session)
    return answers is not None and answers.is_there(session, subject, embedder)


@reads
def find_nearest(
    session: Session,
    subject: Subject,
    scopes: Sequence[str],
    embedder: str,
    vector: bytes,
    most: int,
    conditions: Conditions,
) -> Nearest | None:
    answers = _of(session)
    return None if answers is None else answers.nearest(session, subject, scopes, embedder, vector, most, conditions)


def _of(session: Session) -> _Answers | None:
    name = _BY_DIALECT.get(session.dialect.name)
    return None if name is None else load_name(name)
